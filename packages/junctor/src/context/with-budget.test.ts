import { Buffer } from "node:buffer";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { callTool, listItems, listTools, toProvider } from "../../../../test/support/use-provider.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Content, ToolResult } from "../../../core/src/mcp/types.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Provider } from "../../../core/src/provider/provider.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { estimateTokens } from "./estimate.ts";
import { KeptResults } from "./kept-results.ts";
import { type BudgetOptions, withBudget } from "./with-budget.ts";

const cap = 1000;
const long = Array.from({ length: 2000 }, (_, line) => `line ${line + 1} of many`).join("\n");

/** A provider whose tool `get` gives this result. */
const giving = (result: object, outputSchema?: object): Provider =>
  toProvider(
    [
      {
        name: "get",
        inputSchema: { type: "object" },
        ...(outputSchema === undefined ? {} : { outputSchema: { ...outputSchema } }),
      },
    ],
    () => ({ kind: "complete", result: RawJson.fromText(JSON.stringify(result)) }),
  );
const text = (value: string): Content => ({ type: "text", text: value });
const capped = (result: object, options: Partial<BudgetOptions> = {}): Provider =>
  withBudget(giving(result), { maxResultTokens: cap, ...options });

async function call(
  provider: Provider,
  name = "get",
  args: object = {},
  caller?: string,
): Promise<ToolResult> {
  const outcome = await callTool(provider, name, args, createCallContext({ caller }));
  if (outcome.kind !== "complete") throw new Error(outcome.kind);
  return outcome.result.value as ToolResult;
}
const textOf = ({ content }: ToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
const idIn = (result: ToolResult): string => /"id":"([^"]+)"/.exec(textOf(result))?.[1] ?? "";

test("a result below its cap keeps its bytes, its structured content and its identity", async () => {
  const raw = RawJson.fromText('{"content":[{"type":"text","text":"1.0"}],"structuredContent":{"n":1.0}}');
  const inner = toProvider([], () => ({ kind: "complete", result: raw }));
  const outcome = callTool(withBudget(inner, { maxResultTokens: cap }), "get");
  expect((outcome as { readonly result: RawJson }).result).toBe(raw);
});

describe("a longer result", () => {
  test("has its beginning, its end, and a line that says how to get the rest", async () => {
    const result = await call(capped({ content: [text(long)] }));
    const cut = textOf(result);
    expect(cut.startsWith("line 1 of many\nline 2 of many\n")).toBe(true);
    expect(cut.endsWith("\nline 2000 of many")).toBe(true);
    expect(cut).toMatch(/\[… \d+ of \d+ characters, about \d+ tokens, are left out here\. read_result/);
    expect(estimateTokens(JSON.stringify(result))).toBeLessThanOrEqual(cap);
    expect(result.content.at(-1)).toMatchObject({
      type: "resource_link",
      uri: expect.stringMatching(/^junctor:/) as string,
    });
  });

  test("is read on by lines, where the beginning ended", async () => {
    const provider = capped({ content: [text(long)] });
    const first = textOf(await call(provider));
    const { id, from } = JSON.parse(/read_result (\{.*?\})/.exec(first)![1]!) as { id: string; from: number };
    const next = textOf(await call(provider, "read_result", { id, from, lines: 2 }));
    expect(next).toBe(`line ${from} of many\nline ${from + 1} of many\n\n[More from line ${from + 2}.]`);
    expect(first).toContain(`line ${from - 1} of many`);
    expect(first).not.toContain(`line ${from} of many`);
    expect(textOf(await call(provider, "read_result", { id, from: 2000 }))).toBe(
      "line 2000 of many\n[The end.]",
    );
    expect(textOf(await call(provider, "read_result", { id, from: 3000 }))).toContain("no such line");
  });

  test("is searched by text and by pattern", async () => {
    const provider = capped({ content: [text(long)] });
    const id = idIn(await call(provider));
    const find = async (match: string): Promise<string> =>
      textOf(await call(provider, "read_result", { id, match }));
    expect(await find("line 1234 of")).toBe("1234: line 1234 of many\n\n[The end.]");
    expect(await find("/^LINE 19\\d9 /i")).toContain("1909: line 1909 of many\n1919: ");
    expect(await find("nothing of that kind")).toContain("no line matches");
  });

  test("is not held by a pattern that takes forever", async () => {
    const provider = capped({ content: [text(`${"a".repeat(1900)}!\n${long}`)] });
    const id = idIn(await call(provider));
    await expect(call(provider, "read_result", { id, match: "/^(a+)+$/" })).rejects.toThrow("took too long");
    await expect(call(provider, "read_result", { id, match: "/(/" })).rejects.toThrow(
      "not a regular expression",
    );
  });

  test("is not read for a while by a caller whose patterns took too long, and is by others", async () => {
    const clock = createVirtualClock();
    const content = [text(`${"a".repeat(1900)}!\n${long}`)];
    const provider = capped({ content }, { kept: new KeptResults({ clock }) });
    const read = async (caller: string, match: string): Promise<string> => {
      const id = idIn(await call(provider, "get", {}, caller));
      return textOf(await call(provider, "read_result", { id, match }, caller));
    };
    const refusals: string[] = [];
    for (let attempt = 0; attempt < 20; attempt++)
      refusals.push(await read("greedy", "/^(a+)+$/").catch(String));
    expect(refusals.filter((text) => text.includes("It took too long")).length).toBeLessThan(3);
    expect(refusals.at(-1)).toMatch(/Your last readings took too long. Try again in \d+ s\.$/);
    expect(await read("modest", "line 7 of")).toContain("line 7 of many");
    const waitS = Number(/in (\d+) s\.$/.exec(refusals.at(-1) ?? "")?.[1]);
    await clock.advance(waitS * 1000);
    expect(await read("greedy", "line 7 of")).toContain("line 7 of many");
  });

  test("of line breaks alone does not hold up others", async () => {
    const kept = new KeptResults({ clock: createVirtualClock() });
    const provider = capped({ content: [text("\n".repeat(16 * 1024 * 1024))] }, { kept });
    const id = idIn(await call(provider));
    const answers: string[] = [];
    for (let time = 0; time < 5; time++)
      answers.push(await call(provider, "read_result", { id, from: 1e9 }).then(textOf, String));
    expect(answers.at(-1)).toContain("Your last readings took too long");
  });

  test("of very many small images becomes few links", async () => {
    const image = { type: "image", data: "", mimeType: "image/png" };
    const { content } = await call(capped({ content: Array.from({ length: 20_000 }, () => image) }));
    expect(content.filter(({ type }) => type === "resource_link").length).toBeLessThanOrEqual(16);
    expect(textOf({ content })).toMatch(/\[\d+ more blocks of the result are left out\.\]$/);
  });

  test("with blocks that are not blocks is cut as well", async () => {
    const odd = [
      { type: "resource", resource: { uri: "a://b", blob: 5 } },
      { type: "resource", resource: { uri: "a://b", blob: {}, mimeType: 7 } },
      { type: "image", data: "x".repeat(9000), mimeType: [] },
    ];
    const result = await call(capped({ content: [...odd, text(long)] }));
    expect(textOf(result)).toContain("are left out here");
  });

  test("is read as a resource, which no list has", async () => {
    const provider = capped({ content: [text(long)] });
    const { content } = await call(provider);
    const { uri } = content.at(-1) as { readonly uri: string };
    const read = await provider.call(createOperation("resources/read", uri), createCallContext());
    expect(read).toMatchObject({ kind: "complete" });
    expect((read as { readonly result: RawJson }).result.value).toMatchObject({
      contents: [{ uri, text: long }],
    });
    expect(await listItems(provider, "resources")).toEqual([]);
  });

  test("keeps that it is an error, and has no structured content", async () => {
    const value = { rows: long.split("\n") };
    const result = await call(
      capped({
        content: [text(JSON.stringify(value))],
        structuredContent: value,
        isError: true,
        _meta: { a: 1 },
      }),
    );
    expect(result).toMatchObject({ isError: true, _meta: { a: 1 } });
    expect(result).not.toHaveProperty("structuredContent");
  });

  test("of structured content alone becomes text", async () => {
    const value = { rows: long.split("\n") };
    const result = await call(capped({ content: [], structuredContent: value }));
    expect(textOf(result).startsWith('{"rows":["line 1')).toBe(true);
    expect(estimateTokens(textOf(result))).toBeLessThanOrEqual(cap);
  });

  test("keeps a short text beside structured content that is left out", async () => {
    const result = await call(capped({ content: [text("2000 rows")], structuredContent: { rows: long } }));
    expect(textOf(result)).toContain("2000 rows[The structured content, about");
  });

  test("of one line is cut inside of it, and read in pieces", async () => {
    const line = "é".repeat(20_000);
    const provider = capped({ content: [text(line)] });
    const result = await call(provider);
    const id = idIn(result);
    let all = "";
    for (let from: number | undefined = 1; from !== undefined;) {
      const part = textOf(await call(provider, "read_result", { id, from }));
      const at = part.lastIndexOf("\n[");
      all += part.slice(0, at);
      const next: string | undefined = /\[More from line (\d+)/.exec(part.slice(at))?.[1];
      from = next === undefined ? undefined : Number(next);
    }
    expect(all).toBe(line);
  });
});

test("a small image stays, and images that do not fit become links", async () => {
  const image = { type: "image", data: Buffer.alloc(90_000, 7).toString("base64"), mimeType: "image/png" };
  expect(await call(capped({ content: [image] }, { maxResultTokens: 4000 }))).toEqual({ content: [image] });
  const provider = capped({ content: [text("Two"), image, image, image] }, { maxResultTokens: 4000 });
  const { content } = await call(provider);
  expect(content.map(({ type }) => type)).toEqual(["text", "image", "resource_link", "resource_link"]);
  const { uri, size } = content.at(-1) as { readonly uri: string; readonly size: number };
  expect(size).toBe(90_000);
  const read = (await provider.call(createOperation("resources/read", uri), createCallContext())) as {
    readonly result: RawJson;
  };
  expect(read.result.value).toMatchObject({ contents: [{ mimeType: "image/png", blob: image.data }] });
});

test("tools with a cap list no output schema, others keep it", async () => {
  const inner = giving({}, { type: "object" });
  const listed = async (maxResultTokens: BudgetOptions["maxResultTokens"]): Promise<readonly object[]> =>
    listTools(withBudget(inner, { maxResultTokens }));
  expect(await listed(1000)).toMatchObject([{ name: "get" }, { name: "read_result" }]);
  expect((await listed(1000))[0]).not.toHaveProperty("outputSchema");
  expect((await listed(() => undefined))[0]).toHaveProperty("outputSchema");
});

describe("what is kept", () => {
  test("opens for its caller and profile only", async () => {
    const kept = new KeptResults();
    const [a, b] = ["a", "b"].map((profile) => capped({ content: [text(long)] }, { kept, profile }));
    const result = await call(a!, "get", {}, "ada");
    const id = idIn(result);
    const { uri } = result.content.at(-1) as { readonly uri: string };
    expect(textOf(await call(a!, "read_result", { id }, "ada"))).toContain("line 1 ");
    for (const [provider, caller] of [
      [a, "bob"],
      [a, undefined],
      [b, "ada"],
    ] as const) {
      await expect(call(provider!, "read_result", { id }, caller)).rejects.toThrow("Call the tool again");
      const read = createOperation("resources/read", uri);
      expect(() => provider!.call(read, createCallContext({ caller }))).toThrow("not found");
    }
    await expect(call(a!, "read_result", { id: `${id}=` }, "ada")).rejects.toThrow("Call the tool again");
  });

  test("has an id of 128 bits", () => {
    expect(Buffer.from(new KeptResults().keep("x", "o"), "base64url")).toHaveLength(16);
  });

  test("is forgotten after its time", async () => {
    const clock = createVirtualClock();
    const provider = capped({ content: [text(long)] }, { kept: new KeptResults({ clock }) });
    const id = idIn(await call(provider));
    await clock.advance(10 * 60_000 - 1);
    await call(provider, "read_result", { id });
    await clock.advance(1);
    await expect(call(provider, "read_result", { id })).rejects.toThrow("too long ago");
  });

  test("stays within the bytes of a caller and of all, whoever keeps what", () => {
    const operation = fc.record({
      owner: fc.constantFrom("a", "b", "c"),
      length: fc.integer({ min: 0, max: 300 }),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
        const kept = new KeptResults({ maxBytes: 400, maxBytesPerCaller: 200 });
        const ids = new Map<string, string[]>();
        for (const { owner, length } of operations) {
          const id = kept.keep("é".repeat(length), owner);
          ids.set(owner, [...(ids.get(owner) ?? []), id]);
          expect(kept.bytes).toBeLessThanOrEqual(400);
          for (const [other, theirs] of ids) {
            const held = theirs.reduce((sum, each) => sum + (kept.open(each, other)?.bytes.length ?? 0), 0);
            expect(held).toBeLessThanOrEqual(200);
            if (other !== owner) expect(kept.open(id, other)).toBeUndefined();
          }
          expect(kept.open(id, owner)!.bytes.toString("utf8")).toMatch(/^é*$/);
        }
      }),
      { numRuns: runs(200) },
    );
  });
});

test("a cut result has no more than its cap, whatever it is made of", async () => {
  const block = fc.oneof(
    fc.string({ maxLength: 9000, unit: "binary" }).map(text),
    fc.record({
      type: fc.constant("image"),
      data: fc.base64String({ maxLength: 9000 }),
      mimeType: fc.constant("image/png"),
    }),
    fc
      .string({ maxLength: 9000 })
      .map((value) => ({ type: "resource", resource: { uri: "a://b", text: value } })),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(block, { maxLength: 6 }),
      fc.option(fc.string({ maxLength: 9000 })),
      async (content, more) => {
        const max = 2000;
        const given = { content, ...(more === null ? {} : { structuredContent: { more } }) };
        const result = await call(capped(given, { maxResultTokens: max }));
        const images = result.content.filter(({ type }) => type === "image");
        const cost = images.reduce(
          (sum, each) => sum + Math.min(1600, estimateTokens(JSON.stringify(each))),
          0,
        );
        const others = result.content.filter(({ type }) => type !== "image" && type !== "resource_link");
        const length = others.reduce(
          (sum, each) =>
            sum +
            (each.type === "text"
              ? each.text.length
              : each.type === "resource"
                ? (each.resource as { text: string }).text.length
                : 0),
          0,
        );
        expect(estimateTokens(length) + cost).toBeLessThanOrEqual(max);
      },
    ),
    { numRuns: runs(200) },
  );
});
