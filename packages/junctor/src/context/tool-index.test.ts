import { describe, expect, test } from "vitest";
import { anyone } from "../../../core/src/compose/catalog.ts";
import type { Tool } from "../../../core/src/mcp/types.ts";
import { stemOf, termsOf } from "./terms.ts";
import {
  type IndexedList,
  inSlices,
  Postings,
  readDocument,
  type SlicedWork,
  ToolIndex,
} from "./tool-index.ts";

const tool = (name: string, description: string): Tool => ({
  name,
  description,
  inputSchema: { type: "object" },
});
const serverOf = ({ name }: Tool): { readonly server: string; readonly ownName: string } => {
  const [server = "", ...own] = name.split("__");
  return { server, ownName: own.join("__") };
};
const indexed = (tools: readonly Tool[]): Promise<IndexedList> => new ToolIndex(serverOf).of(tools, anyone);

test.each([
  ["caresses", "caress"],
  ["ponies", "poni"],
  ["cats", "cat"],
  ["feed", "feed"],
  ["agreed", "agre"],
  ["plastered", "plaster"],
  ["motoring", "motor"],
  ["sing", "sing"],
  ["conflated", "conflat"],
  ["hopping", "hop"],
  ["falling", "fall"],
  ["filing", "file"],
  ["happy", "happi"],
  ["relational", "relat"],
  ["conditional", "condit"],
  ["generalization", "gener"],
  ["electricity", "electr"],
  ["hopefulness", "hope"],
  ["adjustment", "adjust"],
  ["controlling", "control"],
  ["probate", "probat"],
  ["rate", "rate"],
])("the stem of %s is %s", (word, stem) => {
  expect(stemOf(word)).toBe(stem);
});

test("words are split where people split them, and count whole too", () => {
  expect(termsOf("createGitHubIssue")).toEqual(["creategithubissu", "creat", "git", "hub", "issu"]);
  expect(termsOf("list-pull_requests of HTTPServer")).toEqual([
    "list",
    "pull",
    "request",
    "httpserver",
    "http",
    "server",
  ]);
  expect(termsOf("what's the Übersicht")).toContain("übersicht");
});

test("a word inside of another is not found", async () => {
  const index = await indexed([tool("a__theme", "Sets colours."), tool("b__heat", "Warms.")]);
  expect(index.best("the hea", 5)).toEqual([]);
});

test("a definition is read once, also when it is renamed and its neighbours change", async () => {
  let reads = 0;
  const inputSchema = {
    type: "object",
    get properties() {
      reads++;
      return {};
    },
  };
  const index = new ToolIndex(serverOf);
  const kept = { ...tool("a__x", "Does x."), inputSchema };
  await index.of([kept], anyone);
  const before = reads;
  await index.of([{ ...kept }, tool("b__y", "Does y.")], anyone);
  expect(reads).toBe(before);
});

describe("work in slices", () => {
  /** What is yielded before each turn of the event loop. */
  const slicesOf = async (work: SlicedWork<unknown>): Promise<readonly (readonly number[])[]> => {
    const slices: number[][] = [[]];
    const watched = function* (): SlicedWork<void> {
      for (let step = work.next(); step.done !== true; step = work.next()) {
        slices.at(-1)?.push(step.value);
        yield step.value;
      }
    };
    let isDone = false;
    const turn = (): void => {
      if (slices.at(-1)?.length !== 0) slices.push([]);
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await inSlices(watched());
    isDone = true;
    return slices;
  };
  const words = (count: number): string =>
    Array.from({ length: count }, (_, number) => `w${number.toString(36)}x`).join(" ");
  const sum = (units: readonly number[]): number => units.reduce((total, each) => total + each, 0);

  test("others get their turn after so much of it", async () => {
    const work = function* (): SlicedWork<void> {
      for (let step = 0; step < 300; step++) yield 1000;
    };
    const slices = await slicesOf(work());
    for (const slice of slices) expect(sum(slice)).toBeLessThanOrEqual(10_000);
    expect(sum(slices.flat())).toBe(300_000);
  });

  test("the index of many tools is made in many slices", async () => {
    const tools = Array.from({ length: 2000 }, (_, number) =>
      tool(`s${number % 20}__tool_${number}`, `Tool ${number} about ${number.toString(36).repeat(20)}.`),
    );
    let turns = 0;
    let isDone = false;
    const turn = (): void => {
      turns++;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await indexed(tools);
    isDone = true;
    expect(turns).toBeGreaterThan(3);
  });

  test("one huge definition is read in small steps, and not all of it", async () => {
    const description = words(500);
    const inner = { [words(50)]: {} };
    const properties = Object.fromEntries(
      Array.from({ length: 5000 }, (_, number) => [
        `p${number}`,
        { type: "object", description, properties: inner },
      ]),
    );
    const huge = { ...tool("a__huge", words(100_000)), inputSchema: { type: "object", properties } };
    const steps: number[] = [];
    const work = readDocument(huge, words(10_000), words(10_000));
    let step = work.next();
    for (; step.done !== true; step = work.next()) steps.push(step.value);
    expect(Math.max(...steps)).toBeLessThanOrEqual(2000);
    expect(sum(steps)).toBeLessThan(100_000);
    const posting = Postings.make([step.value]);
    for (let each = posting.next(); each.done !== true; each = posting.next())
      expect(each.value).toBeLessThanOrEqual(2000);
    const index = await indexed([huge, tool("a__small", "Does little.")]);
    expect(index.best("little", 1)).toEqual(["a__small"]);
  });

  test("a text that is cut into parts keeps its words", async () => {
    const index = await indexed([tool("a__long", `${words(900)} needle`)]);
    for (const word of [...words(900).split(" "), "needle"])
      expect([word, ...index.best(word, 1)]).toEqual([word, "a__long"]);
  });
});

describe("names in a query", () => {
  const tools = [
    tool("a__query", "Runs SQL."),
    tool("a__create_issue", "Makes one."),
    tool("b__create_issue", "Makes one too."),
    tool("b__rows", "Query rows of a database with a filter."),
    tool("c__sendMail", "Sends."),
  ];
  test.each([
    ["B__CREATE_ISSUE", "b__create_issue"],
    ["use b__create_issue, not a__query_all", "b__create_issue"],
    ["then create_issue in rows", "a__create_issue"],
    ["the rows of sendMail", "c__sendMail"],
    ["query", "a__query"],
    ["rows by `query`", "a__query"],
    // A plain word is not a name where there are others.
    ["query rows with a filter", "b__rows"],
  ])("%s", async (query, name) => {
    const index = await indexed(tools);
    expect(index.best(query, 1)).toEqual([name]);
  });
});

test("two words that a tool writes as one are found", async () => {
  const index = await indexed([
    tool("a__getDatasource", "Gets one."),
    tool("a__other", "Gets another source."),
    tool("b__x", "The work space."),
  ]);
  expect(index.best("data source", 1)).toEqual(["a__getDatasource"]);
});

test("a question prefers tools that read, and an order those that do", async () => {
  const index = await indexed([tool("a__create_label", "Label."), tool("a__list_labels", "Label.")]);
  expect(index.best("which labels are there", 1)).toEqual(["a__list_labels"]);
  expect(index.best("make a label", 1)).toEqual(["a__create_label"]);
});

test("a search within one server finds its tools only", async () => {
  const index = await indexed([tool("a__x", "Reads mail."), tool("b__y", "Reads mail.")]);
  expect(index.best("mail", 5)).toEqual(["a__x", "b__y"]);
  expect(index.bestOf("b", "mail", 5)).toEqual(["b__y"]);
  expect(index.bestOf("c", "mail", 5)).toEqual([]);
});
