import { Buffer } from "node:buffer";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createStderrLog, silentLog } from "./log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface Logged {
  readonly write: (chunk: Uint8Array) => void;
  readonly facts: { readonly [name: string]: unknown }[];
  readonly lines: () => readonly unknown[];
}

function make(): Logged {
  const facts: { readonly [name: string]: unknown }[] = [];
  const log = { ...silentLog, debug: (fact: object) => void facts.push(fact as Logged["facts"][number]) };
  return {
    write: createStderrLog("files", log),
    facts,
    lines: () => facts.flatMap(({ stderr }) => stderr ?? []),
  };
}

test("each line is logged under the name of its server", () => {
  const { write, facts } = make();
  write(Buffer.from("one\ntwo\r\n\n   \nthr"));
  write(Buffer.from("ee\n"));
  expect(facts).toEqual(["one", "two", "three"].map((stderr) => ({ server: "files", stderr })));
});

test("text split at every byte is the text that was written", () => {
  const text = "naïve 日本語 🙂 e\u0301\u2028same line\r\nsecond ✓\n";
  const bytes = Buffer.from(text);
  const expected = ["naïve 日本語 🙂 e\u0301\u2028same line", "second ✓"];
  for (let at = 0; at <= bytes.length; at++) {
    const { write, lines } = make();
    write(bytes.subarray(0, at));
    write(bytes.subarray(at));
    expect(lines()).toEqual(expected);
  }
  const { write, lines } = make();
  for (const byte of bytes) write(Uint8Array.of(byte));
  expect(lines()).toEqual(expected);
});

test("bytes that are not text do no harm", () => {
  const { write, lines } = make();
  write(Uint8Array.of(0xff, 0xfe, 0x0a, 0x41, 0x0a));
  expect(lines()).toEqual(["\uFFFD\uFFFD", "A"]);
});

test("a line without end is kept in part only", () => {
  const { write, lines } = make();
  for (let count = 0; count < 1000; count++) write(Buffer.alloc(10_000, "x"));
  write(Buffer.from("the end\n"));
  expect(String(lines()[0]).length).toBeLessThanOrEqual(2000);
});

test("a child that floods leaves fifty lines a second, and how many were left out", () => {
  const { write, facts, lines } = make();
  for (let count = 0; count < 1000; count++) write(Buffer.from(`${"x".repeat(5000)} ${count}\n`.repeat(10)));
  expect(lines()).toHaveLength(50);
  expect(lines().every((line) => String(line).length === 2000)).toBe(true);
  vi.advanceTimersByTime(1000);
  write(Buffer.from("calm again\n"));
  expect(facts.at(-2)).toEqual({ server: "files", dropped: 9950 });
  expect(lines().at(-1)).toBe("calm again");
});
