import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UriTemplateError } from "../errors/index.ts";
import { parseUriTemplate } from "./uri-template.ts";

describe("expanding", () => {
  // RFC 6570, section 3.2, with the variables of its own examples.
  const values = {
    var: "value",
    hello: "Hello World!",
    half: "50%",
    empty: "",
    path: "/foo/bar",
    base: "http://example.com/home/",
    x: "1024",
    y: "768",
    who: "fred",
    dub: "me/too",
    semi: ";",
    v: "6",
  };
  test.each([
    ["{var}", "value"],
    ["{hello}", "Hello%20World%21"],
    ["{half}", "50%25"],
    ["O{empty}X", "OX"],
    ["O{undef}X", "OX"],
    ["{x,y}", "1024,768"],
    ["{x,hello,y}", "1024,Hello%20World%21,768"],
    ["?{x,empty}", "?1024,"],
    ["?{x,undef}", "?1024"],
    ["?{undef,y}", "?768"],
    ["{+var}", "value"],
    ["{+hello}", "Hello%20World!"],
    ["{+half}", "50%25"],
    ["{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"],
    ["{+base}index", "http://example.com/home/index"],
    ["{+path}/here", "/foo/bar/here"],
    ["up{+path}{var}/here", "up/foo/barvalue/here"],
    ["{+x,hello,y}", "1024,Hello%20World!,768"],
    ["{#hello}", "#Hello%20World!"],
    ["{#half}", "#50%25"],
    ["foo{#empty}", "foo#"],
    ["foo{#undef}", "foo"],
    ["foo{#undef,var}", "foo#value"],
    ["{#x,hello,y}", "#1024,Hello%20World!,768"],
    ["{.who}", ".fred"],
    ["X{.x,y}", "X.1024.768"],
    ["X{.empty}", "X."],
    ["X{.undef}", "X"],
    ["{/who}", "/fred"],
    ["{/half,who}", "/50%25/fred"],
    ["{/who,dub}", "/fred/me%2Ftoo"],
    ["{/var,empty}", "/value/"],
    ["{/var,undef}", "/value"],
    ["{?who}", "?who=fred"],
    ["{?x,y}", "?x=1024&y=768"],
    ["{?x,y,empty}", "?x=1024&y=768&empty="],
    ["{?x,y,undef}", "?x=1024&y=768"],
    ["?fixed=yes{&x}", "?fixed=yes&x=1024"],
    ["{&x,y,empty}", "&x=1024&y=768&empty="],
    ["https://example.com/[é] %41", "https://example.com/[%C3%A9]%20%41"],
  ])("%s gives %s", (template, uri) => {
    expect(parseUriTemplate(template).expand(values)).toBe(uri);
  });

  test("inherited properties are not values", () => {
    expect(parseUriTemplate("x{/toString}").expand({})).toBe("x");
  });

  test("a value that is not well-formed text is refused", () => {
    expect(() => parseUriTemplate("x/{a}").expand({ a: "\uD800" })).toThrow(UriTemplateError);
  });

  test("a URI over 8 KiB is refused", () => {
    expect(() => parseUriTemplate("x/{a}").expand({ a: "a".repeat(9_000) })).toThrow(
      expect.objectContaining({ code: "uri_template.too_long" }),
    );
  });
});

describe("matching", () => {
  test.each<[string, string, Record<string, string> | undefined]>([
    ["file:///{name}", "file:///a.txt", { name: "a.txt" }],
    ["file:///{name}", "file:///a/b", undefined],
    ["file:///{name}", "file:///", undefined],
    ["file:///{name}", "file:///x?y", undefined],
    ["file:///{name}", "File:///x", undefined],
    ["file:///{+path}", "file:///a/b%20c.txt", { path: "a/b c.txt" }],
    ["user://{email}", "user://joe@example.com", { email: "joe@example.com" }],
    ["x/{id}", "x/..%2Fetc", { id: "../etc" }],
    ["x/{id}", "x/%FF", undefined],
    ["x/{id}", "x/%", undefined],
    ["{a}-{b}", "x-y-z", { a: "x", b: "y-z" }],
    ["{a}{b}", "%C3%A9%20x", { a: "é", b: " x" }],
    ["{a,b}", "1,2", { a: "1", b: "2" }],
    ["{name}{.ext}", "file.tar.gz", { name: "file", ext: "tar.gz" }],
    ["{name}{.ext}", "file", { name: "file" }],
    ["x{.a,b}", "x.1.2", { a: "1", b: "2" }],
    ["x{/a,b}", "x/1/2", { a: "1", b: "2" }],
    ["x{/a,b}", "x/1", { a: "1" }],
    ["x{/a,b}", "x/1/2/3", undefined],
    ["x{?q,limit}", "x", {}],
    ["x{?q,limit}", "x?limit=3&q=a%26b?", { q: "a&b?", limit: "3" }],
    ["x{?q}{&limit}", "x?limit=3&q=1", { q: "1", limit: "3" }],
    ["x{?q}", "x?", undefined],
    ["x{?q}", "x?other=1", undefined],
    ["x{?q}", "x?q=1&q=2", undefined],
    ["x?fixed=1{&q}", "x?fixed=1&q=2", { q: "2" }],
    ["{+path}{?q}", "a/b?q=1", { path: "a/b", q: "1" }],
    ["x{?q}{#f}", "x?q=1#top", { q: "1", f: "top" }],
    ["x{#f}", "x#a/b", { f: "a/b" }],
    ["é{x}", "%C3%A91", { x: "1" }],
    ["x:/{+a}/{b}{?c}", "x:/#%20/%20?c=%20", { a: "# ", b: " ", c: " " }],
    ["x:/{+a}:{b}", "x:/%20::%20", { a: " :", b: " " }],
    ["x:/{a}-{+b}/{c}", "x:/%20-%23-%20/%20", { a: " -#", b: " ", c: " " }],
    ["x:/{+a}{?b}{#c}", "x:/%20#?b=%23%20#%20", { a: " #", b: "# ", c: " " }],
    ["{+a}{&b,c}", "x&c=1&b=2", { a: "x&c=1", b: "2" }],
    ["plain", "plain", {}],
    ["", "", {}],
  ])("%s against %s", (template, uri, values) => {
    expect(parseUriTemplate(template).match(uri)).toEqual(values);
  });

  test("a variable may be called __proto__", () => {
    const values = parseUriTemplate("x/{__proto__}").match("x/1");
    expect(Object.entries(values ?? {})).toEqual([["__proto__", "1"]]);
  });

  test("a URI over 8 KiB matches nothing", () => {
    expect(parseUriTemplate("{+x}").match("a".repeat(8 * 1024))).toBeDefined();
    expect(parseUriTemplate("{+x}").match("a".repeat(8 * 1024 + 1))).toBeUndefined();
  });
});

describe("parsing refuses", () => {
  test.each([
    ["a{b", "never closed"],
    ["a}b", 'no "{"'],
    ["{}", "variable's name"],
    ["{a b}", "variable's name"],
    ["{a,}", "variable's name"],
    ["{{a}}", "variable's name"],
    ["{a*}", "modifier"],
    ["{a:3}", "modifier"],
    ["{;a}", "operator"],
    ["{a}/{a}", "twice"],
    ["{?a}/x", "may follow"],
    ["a".repeat(1_001), "longer"],
    [Array.from({ length: 33 }, (_, n) => `{v${n}}`).join("/"), "32 variables"],
  ])("%s", (template, reason) => {
    expect(() => parseUriTemplate(template)).toThrow(reason);
  });
});

const separators = fc.constantFrom("/", "-", "/x/", ".", ":");
const operators = fc.constantFrom("", "+", "/", ".", "#", "?");
const grapheme = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" });
const separatingUnits = ["/", "?", "#", "&", "=", ":", ".", "-", ",", "v0", "v1", "é", " "];
// Values made of what separates values find the ambiguous templates.
const separating = fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom(...separatingUnits) });
const text = fc.oneof(grapheme, separating).filter((value) => !value.includes("%"));

describe("what was expanded matches", () => {
  test("with the same values, where separators keep them apart", () => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 10 }), (values) => {
        const template = parseUriTemplate(`x:/${values.map((_, n) => `/{v${n}}`).join("")}{?q}{#f}`);
        const vars = Object.fromEntries(values.map((value, n) => [`v${n}`, value]));
        const all = { ...vars, q: values[0], f: values.at(-1) };
        expect({ ...template.match(template.expand(all)) }).toEqual(all);
      }),
    );
  });

  test("with values that give the same URI, always", () => {
    const piece = fc.record({ operator: operators, separator: separators, value: text });
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
        const ordered = pieces.toSorted((a, b) => rank(a.operator) - rank(b.operator));
        const body = ordered.map(({ operator, separator }, n) => {
          const isTail = operator === "?" || operator === "#";
          const isLater = operator === "?" && ordered[n - 1]?.operator === "?";
          return `${isTail ? "" : separator}{${isLater ? "&" : operator}v${n}}`;
        });
        const template = parseUriTemplate(`x:${body.join("")}`);
        const uri = template.expand(Object.fromEntries(ordered.map(({ value }, n) => [`v${n}`, value])));
        const values = template.match(uri);
        expect(values).toBeDefined();
        expect(template.expand(values ?? {})).toBe(uri);
      }),
    );
  });

  function rank(operator: string): number {
    return operator === "#" ? 2 : operator === "?" ? 1 : 0;
  }
});

describe("work", () => {
  const many = (count: number, part: (n: number) => string): string =>
    Array.from({ length: count }, (_, n) => part(n)).join("");
  const templates = [
    many(32, (n) => `{v${n}}`),
    many(32, (n) => `{+v${n}}`),
    many(32, (n) => `{v${n}}a`),
    many(32, (n) => `{+v${n}}a`),
    many(32, (n) => `{.v${n}}`),
    `{/${many(31, (n) => `v${n},`)}z}`,
    `{+p}{?${many(30, (n) => `v${n},`)}z}`,
    `{+a}${"a".repeat(900)}{+b}`,
    many(16, (n) => `{+v${n}},{w${n}}.`),
  ];
  const units = ["a", "aa,", "/", ".", "%41", "%C3%A9", "?v1=", "&v1=1", "#", ",", "a.", "%"];

  const uriOf = (unit: string, length: number): string => `${unit.repeat(length).slice(0, length)}!`;

  test.each(templates)("matching %s takes a few looks at each character for each part", (source) => {
    const template = parseUriTemplate(source);
    for (const unit of units) {
      const uri = createCountedText(uriOf(unit, 1_000));
      template.match(uri.text);
      // A way that is tried twice at every place would make it millions.
      expect(uri.steps).toBeLessThan(8 * 1_000 * source.length);
    }
  });

  test("2,000 hostile URIs are all answered", () => {
    const parsed = templates.map(parseUriTemplate);
    const answer = (round: number): void => {
      const length = round % 250 === 0 ? 8_190 : (round * 7) % 400;
      const uri = uriOf(units[round % units.length] ?? "a", length).slice(0, length + (round % 2));
      parsed[round % parsed.length]?.match(uri);
    };
    expect(() => Array.from({ length: 2_000 }, (_, round) => answer(round))).not.toThrow();
  });
});

/** A text that counts how many of its characters were looked at. */
function createCountedText(value: string): { readonly text: string; readonly steps: number } {
  let steps = 0;
  const startsWith = (part: string, at: number): boolean => {
    for (let index = 0; index < part.length; index += 1) {
      steps += 1;
      if (value[at + index] !== part[index]) return false;
    }
    return true;
  };
  const indexOf = (part: string, from: number): number => {
    const found = value.indexOf(part, from);
    steps += (found === -1 ? value.length : found) - from;
    return found;
  };
  const slice = (start: number, end: number): string => {
    steps += end - start;
    return value.slice(start, end);
  };
  const members: Record<string, unknown> = { length: value.length, startsWith, indexOf, slice };
  const get = (_: object, key: string): unknown => {
    const at = Number(key);
    if (Number.isNaN(at)) return members[key];
    steps += 1;
    return value[at];
  };
  return {
    text: new Proxy({}, { get }) as unknown as string,
    get steps() {
      return steps;
    },
  };
}
