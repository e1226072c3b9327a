import { Buffer } from "node:buffer";
import { createParser } from "eventsource-parser";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { RpcError } from "../../../core/src/errors/index.ts";
import { SseReader } from "./reply-reader.ts";

interface Reading {
  readonly events: readonly { readonly id: unknown; readonly event: unknown; readonly data: string }[];
  readonly lastEventId: string | undefined;
  readonly retryMs: number | undefined;
}

const toText = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** What a reader makes of these chunks. */
function read(chunks: readonly Uint8Array[], maxEventBytes = 1_000_000): Reading {
  const reader = new SseReader(maxEventBytes);
  const events = chunks.flatMap((chunk) => [...reader.read(chunk)]);
  return {
    events: events.map(({ id, event, data }) => ({ id, event, data: toText(data) })),
    lastEventId: reader.lastEventId,
    retryMs: reader.retryMs,
  };
}

function cut(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

const bytewise = (bytes: Uint8Array): readonly Uint8Array[] => cut(bytes, [...bytes.keys()]);

const stream = [
  ": a comment\n\n",
  "id: 1\ndata:\n\n",
  'id: 2\nevent: message\ndata: {"a":"ü 🦊"}\n\n',
  "retry: 1500\n",
  "data: one\ndata: two\n\n",
  "unknown: field\ndata: last\r\n\r\n",
].join("");

describe("an event stream", () => {
  const expected: Reading = {
    events: [
      { id: "1", event: undefined, data: "" },
      { id: "2", event: "message", data: '{"a":"ü 🦊"}' },
      { id: undefined, event: undefined, data: "one\ntwo" },
      { id: undefined, event: undefined, data: "last" },
    ],
    lastEventId: "2",
    retryMs: 1500,
  };

  for (const end of ["\n", "\r\n", "\r"]) {
    test(`is read the same however it is cut, its lines ending with ${JSON.stringify(end)}`, () => {
      const bytes = Buffer.from(stream.replaceAll(/\r\n|\n/g, end));
      for (let at = 0; at <= bytes.length; at++) expect(read(cut(bytes, [at]))).toEqual(expected);
      expect(read(bytewise(bytes))).toEqual(expected);
    });
  }

  test("may begin with one byte order mark, which is text anywhere else", () => {
    const bytes = Buffer.from("\uFEFFdata: \uFEFFa\nid: \uFEFF1\n\n\uFEFFdata: b\n\n");
    for (let at = 0; at <= bytes.length; at++) {
      const { events } = read(cut(bytes, [at]));
      expect(events).toEqual([{ id: "\uFEFF1", event: undefined, data: "\uFEFFa" }]);
    }
    expect(read([Buffer.from("\uFEFF\uFEFFdata: a\n\n")]).events).toEqual([]);
  });

  test("is ahead of a newline that may follow a carriage return", () => {
    const reader = new SseReader(1000);
    expect(reader.read(Buffer.from("data: a\r\r"))).toHaveLength(1);
    expect(reader.read(Buffer.from(""))).toHaveLength(0);
    expect(reader.read(Buffer.from("\ndata: b\n\n"))).toHaveLength(1);
  });

  test.each([
    ["data", ""],
    ["data:", ""],
    ["data: ", ""],
    ["data:a", "a"],
    ["data:  a ", " a "],
    ["data::", ":"],
    ["data\ndata", "\n"],
    ["data:\ndata:a\ndata:", "\na\n"],
  ])("holds data after at most one space: %j", (lines, data) => {
    expect(read([Buffer.from(`${lines}\n\n`)]).events).toEqual([{ id: undefined, event: undefined, data }]);
  });

  test.each(["event: a", "id: a", "dat: a", "dataa: a", "Data: a", " data: a", "x", ":data: a", "retry: 1"])(
    "without data brings no event: %j",
    (lines) => {
      expect(read([Buffer.from(`${lines}\n\n`)]).events).toEqual([]);
    },
  );

  test.each(["", "x", "1.5", "-1", "1 ", " 1", "1e3", "0x10", "١"])("does not wait for %j", (value) => {
    expect(read([Buffer.from(`retry: 7\n\nretry: ${value}\n\n`)]).retryMs).toBe(7);
  });

  test("hands out the very bytes that came, UTF-8 or not", () => {
    const bytes = Uint8Array.of(0xff, 0xc3, 0x28, 0x00);
    const [event] = new SseReader(100).read(
      Buffer.concat([Buffer.from("data: "), bytes, Buffer.from("\n\n")]),
    );
    expect(Uint8Array.from(event?.data ?? [])).toEqual(bytes);
  });
});

describe("the last event id", () => {
  test.each([
    ["id: 1\n\n", "1"],
    ["id: 1\ndata: a\n\ndata: b\n\n", "1"],
    ["id: 1\n\nid\ndata: a\n\n", ""],
    ["id: 1\n\nid: 2\0\ndata: a\n\n", "1"],
    // The event was cut off, so it is still to come.
    ["id: 1\n\nid: 2\ndata: a\n", "1"],
  ])("of %j is %j", (text, id) => {
    expect(read([Buffer.from(text)]).lastEventId).toBe(id);
    expect(read(bytewise(Buffer.from(text))).lastEventId).toBe(id);
  });
});

describe("any stream", () => {
  const bytesOf = (text: string): Uint8Array => Buffer.from(text);
  const name = fc.constantFrom(
    "data",
    "event",
    "id",
    "retry",
    "dat",
    "datas",
    "",
    "Data",
    "\uFEFFdata",
    "ïd",
  );
  const separator = fc.constantFrom("", ":", ": ", ":  ", " :", "::");
  const value = fc.oneof(
    fc.constantFrom("", "message", "12", "007", "a\0b", "\uFEFF", "{}", "1e3"),
    fc.string({ unit: "binary", maxLength: 12 }),
  );
  const field = fc.tuple(name, separator, value).map((parts) => bytesOf(parts.join("")));
  const junk = fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc.tuple(field, fc.uint8Array({ maxLength: 4 })).map((parts) => Buffer.concat(parts)),
  );
  const line = fc
    .oneof({ weight: 4, arbitrary: field }, { weight: 3, arbitrary: fc.constant(bytesOf("")) }, junk)
    .map((bytes) => Buffer.from(bytes.filter((byte) => byte !== 0x0a && byte !== 0x0d)));
  const lineEnd = fc.constantFrom("\n", "\r\n", "\r").map(bytesOf);
  const lines = fc.array(fc.tuple(line, lineEnd), { maxLength: 24 });
  const mark = fc.constantFrom("", "", "\uFEFF", "\uFEFF\uFEFF").map(bytesOf);
  const places = fc.array(fc.nat(10_000), { maxLength: 30 });

  /**
   * What eventsource-parser reads. After a carriage return at the very end it waits for more, so a comment is added;
   * and it drops a byte order mark decoded as Latin-1 from the first text only, so that text is empty.
   */
  function readByOracle(text: string): Reading {
    const events: { id: unknown; event: unknown; data: string }[] = [];
    let lastEventId: string | undefined;
    let retryMs: number | undefined;
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        events.push({ id, event, data });
        lastEventId = id ?? lastEventId;
      },
      onRetry: (ms) => {
        retryMs = ms;
      },
    });
    parser.feed("");
    parser.feed(`${text}:\n`);
    return { events, lastEventId, retryMs };
  }

  test("gives the events, ids and waits that eventsource-parser finds, wherever it is cut", () => {
    fc.assert(
      fc.property(mark, lines, places, (start, parts, ends) => {
        const bytes = Buffer.concat([start, ...parts.flat()]);
        const text = new TextDecoder().decode(bytes);
        const { events, retryMs } = readByOracle(text);
        // It forgets the id of an event without data; the standard does not. So give every event data.
        const withData = text.replaceAll(/\r\n|\r/g, "\n").replaceAll(/^\n/gm, "data\n\n");
        const { lastEventId } = readByOracle(withData);
        const whole = read([bytes]);
        expect(whole).toEqual({ events, lastEventId, retryMs });
        expect(read(cut(bytes, ends))).toEqual(whole);
        expect(read(bytewise(bytes))).toEqual(whole);
      }),
      { numRuns: runs(2000) },
    );
  });

  test("is over the limit or not, wherever it is cut", () => {
    const attempt = (chunks: readonly Uint8Array[], limit: number): Reading | "over" => {
      try {
        return read(chunks, limit);
      } catch (error) {
        expect(error).toBeInstanceOf(RpcError);
        return "over";
      }
    };
    fc.assert(
      fc.property(lines, places, fc.integer({ min: 5, max: 40 }), (parts, ends, limit) => {
        const bytes = Buffer.concat(parts.flat());
        const whole = attempt([bytes], limit);
        expect(attempt(cut(bytes, ends), limit)).toEqual(whole);
        expect(attempt(bytewise(bytes), limit)).toEqual(whole);
      }),
      { numRuns: runs(500) },
    );
  });
});

describe("the limit", () => {
  test("ends the reading of an event over it with an error", () => {
    const reader = new SseReader(100);
    const chunk = Buffer.from(`data: ${"x".repeat(60)}`);
    expect(reader.read(chunk)).toEqual([]);
    expect(() => reader.read(chunk)).toThrow(RpcError);
  });

  test("is for all data lines of an event together", () => {
    const reader = new SseReader(100);
    expect(() => reader.read(Buffer.from("data: x\n".repeat(100)))).toThrow("more than 100 bytes");
  });

  test("is for a line that never ends, whatever it is", () => {
    const reader = new SseReader(100);
    expect(() => reader.read(Buffer.from(`:${"x".repeat(100)}`))).toThrow(RpcError);
  });

  test("lets many small events pass, and any number of comments", () => {
    const reader = new SseReader(100);
    expect(reader.read(Buffer.from("data: x\n\n".repeat(1000)))).toHaveLength(1000);
    expect(reader.read(Buffer.from("data: x\n"))).toEqual([]);
    for (let index = 0; index < 1000; index++) expect(reader.read(Buffer.from(": keep-alive\n"))).toEqual([]);
    expect(reader.read(Buffer.from("\n"))).toHaveLength(1);
  });
});
