import { expect, test } from "vitest";
import type { Tool } from "../../mcp/types.ts";
import { stemOf } from "./stem.ts";
import { termsOf } from "./terms.ts";
import { ToolIndex } from "./tool-index.ts";

const tool = (name: string, description: string): Tool => ({
  name,
  description,
  inputSchema: { type: "object" },
});
const serverOf = ({ name }: Tool): { readonly server: string; readonly ownName: string } => {
  const [server = "", ...own] = name.split("__");
  return { server, ownName: own.join("__") };
};

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
  const index = await new ToolIndex(serverOf).of([
    tool("a__theme", "Sets colours."),
    tool("b__heat", "Warms."),
  ]);
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
  await index.of([kept]);
  const before = reads;
  await index.of([{ ...kept }, tool("b__y", "Does y.")]);
  expect(reads).toBe(before);
});

test("an index holds the event loop for no longer than a slice", async () => {
  const tools = Array.from({ length: 2000 }, (_, number) =>
    tool(`s${number % 20}__tool_${number}`, `Tool number ${number} about ${number.toString(36).repeat(20)}.`),
  );
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns++;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await new ToolIndex(serverOf).of(tools);
  isDone = true;
  expect(turns).toBeGreaterThan(3);
});
