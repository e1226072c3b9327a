import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { SpliceError } from "./json-splice.ts";
import { parseToml, spliceToml } from "./toml-splice.ts";
import { parseYaml, spliceYaml } from "./yaml-splice.ts";

const entry = { command: "/bin/junctor", args: ["attach", "--client", "codex"] };
const set = new Map([["junctor", entry]]);

type Tables = { readonly [name: string]: unknown };
type Splice = typeof spliceToml;

/** The text with the edit; undefined when it was refused. */
function tryTo(act: () => string): string | undefined {
  try {
    return act();
  } catch (error) {
    if (error instanceof SpliceError) return undefined;
    throw error;
  }
}

interface Format {
  readonly splice: Splice;
  readonly parse: (file: string, text: string) => object;
  readonly section: string;
  readonly file: fc.Arbitrary<string>;
}

const eol = fc.constantFrom("\n", "\r\n");
const word = fc.constantFrom("a", "b", "git-hub", "x_1", "fetch");
const text = fc.constantFrom("npx", "-y", "a # b", "it's", "[mcp_servers.a]", "# >>> junctor", "ünï", "");
const comment = fc.constantFrom("", "", "", "# note", "  # far", "#", "# [mcp_servers.a]");
const gap = fc.constantFrom("", "", " ", "  ");

/** TOML as people write it: comments, blanks, quoted names, arrays over lines, texts that look like tables. */
function anyToml(): fc.Arbitrary<string> {
  const value = fc.oneof(
    text.map((each) => JSON.stringify(each)),
    text.filter((each) => !each.includes("'")).map((each) => `'${each}'`),
    text.map((each) => `"""\n${each}\n"""`),
    fc.integer({ min: 0, max: 9 }).map(String),
    fc
      .array(text, { maxLength: 3 })
      .map((all) => `[ ${all.map((each) => JSON.stringify(each)).join(",\n  ")} ]`),
    text.map((each) => `{ k = ${JSON.stringify(each)} }`),
  );
  const pair = fc
    .tuple(word, gap, value, comment)
    .map(([key, blank, each, end]) => `${key}${blank}=${blank}${each} ${end}`);
  const pairs = fc.uniqueArray(pair, { maxLength: 3, selector: (line) => line.split(/[ =]/)[0] });
  const name = fc.oneof(word, fc.constant('"q.d"'), fc.constant("'lit'"));
  const server = fc
    .tuple(name, gap, pairs, comment, fc.boolean())
    .map(([own, blank, lines, end, hasEnv]) => [
      `[${blank}mcp_servers.${own}${blank}] ${end}`,
      ...lines,
      ...(hasEnv && !lines.some((line) => line.startsWith("env"))
        ? [`[mcp_servers.${own}.env]`, 'K = "v"']
        : []),
    ]);
  const servers = fc.uniqueArray(server, {
    maxLength: 4,
    selector: ([head = ""]) => /mcp_servers\.("[^"]*"|'[^']*'|[\w-]+)/.exec(head)?.[1],
  });
  return fc
    .tuple(comment, pairs, servers, pairs, eol, fc.boolean())
    .map(([first, top, tables, last, end, isEnded]) => {
      const lines = [first, ...top, ...tables.flat(), "[tools]", ...last, first];
      return `${lines.join("\n")}${isEnded ? "\n" : ""}`.replaceAll("\n", end);
    });
}

/** YAML as people write it: comments, blank lines, two or four blanks, mappings between brackets, texts over lines. */
function anyYaml(): fc.Arbitrary<string> {
  const value = fc.oneof(
    text.map((each) => ` ${JSON.stringify(each)}`),
    text.filter((each) => !each.includes("'")).map((each) => ` '${each}'`),
    fc.integer({ min: 0, max: 9 }).map((each) => ` ${each}`),
    fc.array(text, { maxLength: 3 }).map((all) => ` [${all.map((each) => JSON.stringify(each)).join(", ")}]`),
    fc.constant(" { k: v }"),
    fc.constant(" |\n            extensions:\n              junctor: no"),
  );
  const pair = fc.tuple(word, value, comment).map(([key, each, end]) => {
    const isBlock = each.includes("|");
    return `${key}:${each}${isBlock || end === "" ? "" : ` ${end.trim()}`}`;
  });
  const pairs = (max: number): fc.Arbitrary<string[]> =>
    fc.uniqueArray(pair, { maxLength: max, minLength: 1, selector: (line) => line.split(":")[0] });
  const server = fc.tuple(fc.constantFrom("one", "two", '"q d"', "three"), pairs(3), comment);
  const servers = fc.uniqueArray(server, { maxLength: 4, selector: ([name]) => name });
  const style = fc.tuple(fc.constantFrom("  ", "    "), eol, fc.boolean(), comment);
  return fc
    .tuple(pairs(2), servers, pairs(2), style)
    .map(([top, all, last, [indent, end, isEnded, note]]) => {
      const members = all.flatMap(([name, lines, end2]) => [
        ...(end2 === "" ? [] : [`${indent}${end2.trim()}`]),
        `${indent}${name}:`,
        ...lines.map((line) => `${indent}${indent}${line}`),
      ]);
      const head = all.length === 0 ? "extensions: {}" : "extensions:";
      const rest = last.map((line) => `z${line}`);
      const lines = [note.trim(), ...top, head, ...members, ...rest];
      return `${lines.join("\n")}${isEnded ? "\n" : ""}`.replaceAll("\n", end);
    });
}

const formats: { readonly [name: string]: Format } = {
  TOML: { splice: spliceToml, parse: parseToml, section: "mcp_servers", file: anyToml() },
  YAML: { splice: spliceYaml, parse: parseYaml, section: "extensions", file: anyYaml() },
};

describe.each(Object.entries(formats))("an edit of any %s file", (name, { splice, parse, section, file }) => {
  const plain = (content: string): Tables => JSON.parse(JSON.stringify(parse(name, content))) as Tables;
  const without = ({ [section]: own, ...rest }: Tables): readonly [Tables, Tables] => [
    (own ?? {}) as Tables,
    rest,
  ];

  test("gives the old value with ours, and the old bytes when ours are taken out again", () => {
    let refused = 0;
    fc.assert(
      fc.property(file, (content) => {
        const [servers, rest] = without(plain(content));
        const next = tryTo(() => splice(name, content, { section, set, remove: [] }));
        if (next === undefined) return void refused++;
        expect(without(plain(next))).toEqual([{ ...servers, junctor: entry }, rest]);
        const back = splice(name, next, { section, set: new Map(), remove: ["junctor"] });
        expect(without(plain(back))).toEqual([servers, rest]);
        // An empty section may be written in more words; the end of the last line may be added.
        if (Object.keys(servers).length > 0) expect(back.trimEnd()).toBe(content.trimEnd());
      }),
      { numRuns: runs(5000) },
    );
    // Refusing everything would be right, and of no use.
    expect(refused).toBeLessThan(runs(5000) / 10);
  });

  test("takes out some servers and changes nothing else, or is refused", () => {
    let refused = 0;
    fc.assert(
      fc.property(file, fc.array(fc.nat(3), { maxLength: 3 }), (content, chosen) => {
        const [servers, rest] = without(plain(content));
        const names = Object.keys(servers);
        const remove = chosen.flatMap((index) => names[index] ?? []);
        const next = tryTo(() => splice(name, content, { section, set, remove }));
        if (next === undefined) return void refused++;
        const left = Object.entries(servers).filter(([each]) => !remove.includes(each));
        expect(without(plain(next))).toEqual([{ ...Object.fromEntries(left), junctor: entry }, rest]);
      }),
      { numRuns: runs(2000) },
    );
    expect(refused).toBeLessThan(runs(2000) / 3);
  });
});

describe("a YAML file", () => {
  test("with a comment beside an empty section keeps it", () => {
    for (const empty of ["extensions: # mine", "extensions:  {} # mine", "extensions: ~ # mine"]) {
      const next = spliceYaml("f", `${empty}\nb: 2\n`, { section: "extensions", set, remove: [] });
      expect(next).toMatch(/^extensions: # mine\n  junctor:/);
    }
  });

  test("with an alias of nothing, or with too many aliases, is refused", () => {
    expect(() => parseYaml("f", "a: *nothing\n")).toThrow(SpliceError);
    const rows = ["a: &a [x,x,x,x,x,x,x,x,x]", "b: &b [*a,*a,*a,*a,*a,*a]", "c: &c [*b,*b,*b,*b,*b,*b]"];
    const bomb = [...rows, "d: &d [*c,*c,*c,*c,*c,*c]", "e: [*d,*d,*d,*d,*d]"].join("\n");
    expect(() => parseYaml("f", bomb)).toThrow(SpliceError);
  });
});

test("a file between brackets is not said to be wrong: it cannot be edited", () => {
  const why = "is written in a way that cannot be edited without changing other parts";
  const yaml = "extensions: {a: {cmd: x}, b: {cmd: y}}\n";
  expect(() => spliceYaml("f", yaml, { section: "extensions", set, remove: [] })).toThrow(why);
  const toml = 'mcp_servers = { a = { command = "x" } }\n';
  expect(() => spliceToml("f", toml, { section: "mcp_servers", set, remove: [] })).toThrow(why);
});
