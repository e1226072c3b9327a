import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  formatLock,
  type Lock,
  type LockPart,
  readLock,
  toCanonicalJson,
  writeLock,
} from "../../packages/junctor/src/lock/lock-file.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-lock-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

const toLock = (servers: { readonly [server: string]: { readonly [part: string]: unknown } }): Lock =>
  new Map(
    Object.entries(servers).map(([server, parts]) => {
      const entries = Object.entries(parts).map(([part, things]) => {
        const named = part === "instructions" ? { "": things } : (things as object);
        return [part as LockPart, new Map<string, unknown>(Object.entries(named))] as const;
      });
      return [server, new Map(entries)];
    }),
  );

describe("canonical JSON", () => {
  test("is the same whatever the order of keys, and differs when a value does", () => {
    expect(toCanonicalJson({ b: [1, { d: "x", c: null }], a: {} })).toBe(
      '{"a":{},"b":[1,{"c":null,"d":"x"}]}',
    );
    expect(toCanonicalJson([1, 2])).not.toBe(toCanonicalJson([2, 1]));
  });

  test("keeps a member called __proto__", () => {
    expect(toCanonicalJson(JSON.parse('{"b":1,"__proto__":{"a":2}}'))).toBe('{"__proto__":{"a":2},"b":1}');
  });
});

describe("a lock", () => {
  const lock = toLock({
    b: { tools: { z: { name: "z" }, a: { name: "a", "10": 1, "9": 2 } }, instructions: "Text.\nMore." },
    a: { prompts: { ["__proto__"]: { name: "__proto__" } } },
  });

  test("is read as it was written", () => {
    const file = join(folder, "same.lock");
    writeLock(file, lock);
    expect(readLock(file)).toEqual({ kind: "read", lock, text: readFileSync(file, "utf8") });
  });

  test("has one text, whatever the order of its parts, with one line for each value", () => {
    const text = formatLock(lock);
    expect(text).toBe(formatLock(new Map([...lock].toReversed())));
    expect(text.split("\n").filter((line) => line.includes("Text."))).toEqual([
      String.raw`      "instructions": "Text.\nMore.",`,
    ]);
  });

  test.each(["Text", '"z"', '"a": {', "prompts"])("is found to be edited when %j in it changes", (word) => {
    const file = join(folder, "edited.lock");
    writeFileSync(file, formatLock(lock).replace(word, word.replace(/[a-zT]/, "Q")));
    expect(readLock(file).kind).toBe("damaged");
  });

  test("may have other line ends and spaces: git changes those", () => {
    const file = join(folder, "spaced.lock");
    writeFileSync(file, formatLock(lock).replaceAll("\n", "\r\n"));
    expect(readLock(file)).toMatchObject({ kind: "read", lock });
  });

  test("that cannot be read must not be replaced", () => {
    expect(readLock(folder)).toMatchObject({
      kind: "unusable",
      message: expect.stringContaining("EISDIR") as string,
    });
  });

  test("behind a link is replaced and the link stays; nothing else is left in the folder", () => {
    const own = mkdtempSync(join(folder, "link-"));
    const [target, link] = [join(own, "real.lock"), join(own, "junctor.lock")];
    writeFileSync(target, "");
    symlinkSync(target, link);
    writeLock(link, lock);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readLock(target).kind).toBe("read");
    expect(readdirSync(own).toSorted()).toEqual(["junctor.lock", "real.lock"]);
  });
});
