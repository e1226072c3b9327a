import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findBrokenAnswer } from "../rpc/parse.ts";
import { type InputLine, LineSplitter } from "./line-reader.ts";

const limit = 1024;

/** The lines of some chunks, as text; `null` stands for one that was too long. */
function split(chunks: readonly Uint8Array[], maxBytes = limit): readonly (string | null)[] {
  const splitter = new LineSplitter(maxBytes);
  const lines: InputLine[] = [];
  for (const chunk of chunks) lines.push(...splitter.push(chunk));
  lines.push(...splitter.flush());
  return lines.map(toText);
}

function toText(line: InputLine): string | null {
  if (line.kind === "pieced") return Buffer.from(line.bytes.join()).toString("utf8");
  return line.kind === "line" ? Buffer.from(line.bytes).toString("utf8") : null;
}

function cut(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

/** Text of one line: anything but its end, and not blank, since blank lines are left out. */
const lineText = fc
  .string({ unit: "binary", maxLength: 30 })
  .map((text) => `${text.replaceAll(/[\r\n]/g, "\u2028")}.`);
const lineEnd = fc.constantFrom("\n", "\r\n");
const document = fc.array(fc.tuple(lineText, lineEnd), { maxLength: 8 });

describe("lines", () => {
  test("are the same wherever the bytes are cut in two", () => {
    fc.assert(
      fc.property(document, (parts) => {
        const bytes = Buffer.from(parts.flat().join(""), "utf8");
        const expected = parts.map(([text]) => Buffer.from(text, "utf8").toString("utf8"));
        for (let place = 0; place <= bytes.length; place++) {
          expect(split([bytes.subarray(0, place), bytes.subarray(place)])).toEqual(expected);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("are the same however many chunks they come in", () => {
    fc.assert(
      fc.property(document, fc.array(fc.nat(10_000), { maxLength: 40 }), (parts, places) => {
        const bytes = Buffer.from(parts.flat().join(""), "utf8");
        expect(split(cut(bytes, places))).toEqual(split([bytes]));
      }),
    );
  });

  test("are the same when they come a byte at a time", () => {
    const bytes = Buffer.from('{"a":"é日😀"}\r\n\r\n{"b":"\u2028"}\n', "utf8");
    expect(split(cut(bytes, [...bytes.keys()]))).toEqual(['{"a":"é日😀"}', '{"b":"\u2028"}']);
  });

  test("hold the very bytes that came, valid UTF-8 or not", () => {
    const [line] = [...new LineSplitter(limit).push(Uint8Array.of(0xff, 0xc3, 0x28, 0x00, 0x0a))];
    expect(line).toEqual({ kind: "line", bytes: Uint8Array.of(0xff, 0xc3, 0x28, 0x00) });
  });

  test.each(["\u2028", "\u2029", "\u0085", "\u000b", "\u000c", "a\rb"])("do not end at %j", (text) => {
    expect(split([Buffer.from(`x${text}y\n`)])).toEqual([`x${text}y`]);
  });

  test.each(["\n\n\n", "\r\n\r\n", "  \n\t\n", " \r\n"])("are left out when blank: %j", (blank) => {
    expect(split([Buffer.from(`${blank}a\n${blank}b\n${blank}`)])).toEqual(["a", "b"]);
  });

  test("end with the stream, without a line end", () => {
    expect(split([Buffer.from("a\nb")])).toEqual(["a", "b"]);
  });
});

describe("a line over the limit", () => {
  test("passes at exactly the limit, with either line end, wherever it is cut", () => {
    for (const end of ["\n", "\r\n"]) {
      const bytes = Buffer.from(`${"x".repeat(8)}${end}y${end}`);
      for (let place = 0; place <= bytes.length; place++) {
        const chunks = [bytes.subarray(0, place), bytes.subarray(place)];
        expect(split(chunks, 8)).toEqual(["x".repeat(8), "y"]);
      }
    }
  });

  test("is reported once, and the lines around it are not affected, wherever it is cut", () => {
    const bytes = Buffer.from(`a\n${"x".repeat(9)}\nb\r\n${"y".repeat(40)}\r\nc`);
    for (let first = 0; first <= bytes.length; first++) {
      for (let second = first; second <= bytes.length; second++) {
        const chunks = [bytes.subarray(0, first), bytes.subarray(first, second), bytes.subarray(second)];
        const lines = split(chunks, 8).join();
        // Once more at its end, if that came later.
        expect(lines.replaceAll(/,+/g, ",")).toBe("a,b,c");
        expect(lines.length).toBeLessThanOrEqual("a,,,b,,,c".length);
        expect(lines.length).toBeGreaterThanOrEqual("a,,b,,c".length);
      }
    }
  });

  test("is reported before its end has come, with the first byte over the limit", () => {
    const splitter = new LineSplitter(8);
    expect([...splitter.push(Buffer.from("x".repeat(8)))]).toEqual([]);
    expect([...splitter.push(Buffer.from("x"))]).toMatchObject([{ kind: "too_long", maxBytes: 8 }]);
    expect([...splitter.push(Buffer.from("xxxx"))]).toEqual([]);
    const [end, ...next] = splitter.push(Buffer.from("\nnext\n"));
    expect(end).toMatchObject({ kind: "skipped", tail: Buffer.from("xxxxx") });
    expect(next.map(toText)).toEqual(["next"]);
  });

  test("is reported with its beginning, however small its first piece was", () => {
    const answer = `{"jsonrpc":"2.0","id":7,"result":"${"x".repeat(100_000)}`;
    for (let cut = 1; cut < 40; cut++) {
      const splitter = new LineSplitter(50_000);
      splitter.push(Buffer.from(`next\n${answer.slice(0, cut)}`));
      // A large piece is kept as it is, so the small one before it stays alone.
      splitter.push(Buffer.from(answer.slice(cut, 30_000)));
      const [line] = splitter.push(Buffer.from(answer.slice(30_000)));
      expect(line?.kind === "too_long" && findBrokenAnswer(line.head)).toEqual({ id: "7" });
    }
  });
});
