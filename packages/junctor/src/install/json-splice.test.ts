import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { parseJson, SpliceError, spliceJson } from "./json-splice.ts";

const entry = { command: "/home/a/.junctor/bin/junctor", args: ["attach", "--client", "cursor"] };
const set = new Map([["junctor", entry]]);
const edit = { section: "mcpServers", set, remove: [] };
const put = (text: string): string => spliceJson("file.json", text, edit);
const valueOf = (text: string): unknown => parseJson("file.json", text)?.value;

describe("spliceJson", () => {
  test("adds an entry in the style of the file", () => {
    const text =
      '{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"a": { "command": "b" } // last\r\n\t},\r\n}\r\n';
    expect(put(text)).toBe(
      '{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"junctor": {\r\n\t\t\t"command": "/home/a/.junctor/bin/junctor",\r\n\t\t\t"args": [\r\n\t\t\t\t"attach",\r\n\t\t\t\t"--client",\r\n\t\t\t\t"cursor"\r\n\t\t\t]\r\n\t\t},\r\n\t\t"a": { "command": "b" } // last\r\n\t},\r\n}\r\n',
    );
  });

  test.each([
    ["{}"],
    ['{"a":1}'],
    ['{"mcpServers":{}}'],
    ['{ "mcpServers": { } }'],
    [""],
    ["  \n"],
    ["// nothing\n"],
  ])("adds an entry to %j", (text) => {
    const old = (valueOf(text) ?? {}) as { mcpServers?: object };
    expect(valueOf(put(text))).toEqual({ ...old, mcpServers: { ...old.mcpServers, junctor: entry } });
  });

  test("replaces an entry of that name where it stands", () => {
    const text = '{ "mcpServers": { "a": 1, "junctor": /* old */ { "x": [1, 2] } , "b": 2 } }';
    expect(valueOf(put(text))).toEqual({ mcpServers: { a: 1, junctor: entry, b: 2 } });
    expect(put(text)).toContain('"a": 1, "junctor": /* old */ {');
  });

  test("takes members out with their lines, and leaves plain JSON plain", () => {
    const text = '{\n  "mcpServers": {\n    "a": 1,\n    "b": {\n      "c": 2\n    }\n  },\n  "z": 0\n}\n';
    const next = spliceJson("file.json", text, { section: "mcpServers", set: new Map(), remove: ["b"] });
    expect(next).toBe('{\n  "mcpServers": {\n    "a": 1\n  },\n  "z": 0\n}\n');
    const none = spliceJson("file.json", text, { section: "mcpServers", set: new Map(), remove: ["a", "b"] });
    expect(none).toBe('{\n  "mcpServers": {\n  },\n  "z": 0\n}\n');
  });

  test.each([
    ["[1]", "is not an object"],
    ['{"mcpServers": [] }', "mcpServers is not an object"],
    ['{"mcpServers": {"a": 1, "a": 2} }', "is written twice"],
    ['{"mcpServers": {', "expected"],
    ["{'a': 1}", "expected"],
  ])("%s is refused", (text, message) => {
    expect(() => put(text)).toThrow(SpliceError);
    expect(() => put(text)).toThrow(message);
  });

  test("of any file gives the old value with ours, and the old bytes when ours are cut again", () => {
    fc.assert(
      fc.property(anyFile(), (text) => {
        const old = valueOf(text) as { mcpServers?: object };
        const next = put(text);
        expect(valueOf(next)).toEqual({ ...old, mcpServers: { ...old.mcpServers, junctor: entry } });
        expect(cutOut(next, text)).toBe(text);
      }),
      { numRuns: runs(5000) },
    );
  });

  test("of any file takes out some members, and changes nothing else", () => {
    fc.assert(
      fc.property(anyFile(), fc.array(fc.nat(5), { maxLength: 4 }), (text, chosen) => {
        const old = valueOf(text) as { mcpServers?: { [name: string]: unknown } };
        const names = Object.keys(old.mcpServers ?? {});
        const remove = chosen.flatMap((index) => names[index] ?? []);
        const next = spliceJson("file.json", text, { section: "mcpServers", set, remove });
        const left = Object.entries(old.mcpServers ?? {}).filter(([name]) => !remove.includes(name));
        expect(valueOf(next)).toEqual({
          ...old,
          mcpServers: { ...Object.fromEntries(left), junctor: entry },
        });
      }),
      { numRuns: runs(5000) },
    );
  });
});

/** The bytes without those that were inserted, which must be in one piece. */
function cutOut(next: string, text: string): string {
  let start = 0;
  while (start < text.length && next[start] === text[start]) start++;
  const tail = text.length - start;
  return next.slice(0, start) + (tail === 0 ? "" : next.slice(-tail));
}

/** JSON as people write it: comments, trailing commas, odd blanks, either line end, a byte order mark. */
function anyFile(): fc.Arbitrary<string> {
  const key = fc.oneof(fc.constantFrom("a", "b", "command", "args"), fc.string({ maxLength: 5 }));
  const leaf = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string({ maxLength: 8 }));
  const { value } = fc.letrec<{ value: unknown; object: object }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie("value"), { maxLength: 3 }), tie("object")),
    object: fc.dictionary(key, tie("value"), { maxKeys: 4 }),
  }));
  const servers = fc.dictionary(
    key.filter((name) => name !== "junctor"),
    value,
    { maxKeys: 5 },
  );
  const top = fc.tuple(
    fc.dictionary(key, value, { maxKeys: 3 }),
    fc.option(servers, { nil: undefined }),
    fc.boolean(),
  );
  const style = fc.record({
    eol: fc.constantFrom("\n", "\r\n"),
    indent: fc.constantFrom("", "  ", "    ", "\t"),
    isLined: fc.boolean(),
    comma: fc.boolean(),
    comments: fc.infiniteStream(fc.constantFrom("", "", "", "", " ", "/* c */", "// c\n")),
    mark: fc.boolean(),
  });
  return fc.tuple(top, style).map(([[rest, own, isFirst], given]) => {
    const { mcpServers: _, ...others } = rest as { mcpServers?: unknown };
    const section = own === undefined ? {} : { mcpServers: own };
    const all = isFirst ? { ...section, ...others } : { ...others, ...section };
    return `${given.mark ? "\uFEFF" : ""}${writeOddly(all, given, "")}${given.eol}`;
  });
}

interface OddStyle {
  readonly eol: string;
  readonly indent: string;
  readonly isLined: boolean;
  readonly comma: boolean;
  readonly comments: Iterator<string>;
}

function writeOddly(value: unknown, style: OddStyle, indent: string): string {
  const { eol, isLined, comma, comments } = style;
  const trivia = (): string => String(comments.next().value).replace("\n", eol);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isArray = Array.isArray(value);
  const inner = `${indent}${style.indent}`;
  const items = Object.entries(value).map(([key, each]) => {
    const name = isArray ? "" : `${JSON.stringify(key)}${trivia()}:${trivia()}`;
    return `${trivia()}${name}${writeOddly(each, style, inner)}${trivia()}`;
  });
  const [open, close] = isArray ? ["[", "]"] : ["{", "}"];
  const gap = isLined ? `${eol}${inner}` : "";
  const last = items.length > 0 && comma ? "," : "";
  const end = isLined ? `${eol}${indent}` : "";
  return `${open}${items.map((item) => `${gap}${item}`).join(",")}${last}${trivia()}${end}${close}`;
}

test("a file of comments alone keeps them", () => {
  const edit = { section: "mcpServers", set: new Map([["junctor", { command: "x" }]]), remove: [] };
  expect(spliceJson("f", "// mine\n/* too */", edit)).toMatch(/^\/\/ mine\n\/\* too \*\/\n\{\n/);
  expect(spliceJson("f", "\uFEFF", edit)).toMatch(/^\uFEFF\{\n/);
});
