import { describe, expect, test } from "vitest";
import { RpcError } from "../../errors/rpc-error.ts";
import { SseReader } from "./sse-reader.ts";

const stream = [
  ": a comment\n\n",
  "id: 1\ndata:\n\n",
  'id: 2\nevent: message\ndata: {"a":"ü 🦊"}\n\n',
  "retry: 1500\n",
  "data: one\ndata: two\n\n",
  "unknown: field\ndata: last\r\n\r\n",
].join("");

describe("an event stream", () => {
  const expected = [
    { id: "1", event: undefined, data: "" },
    { id: "2", event: "message", data: '{"a":"ü 🦊"}' },
    { id: undefined, event: undefined, data: "one\ntwo" },
    { id: undefined, event: undefined, data: "last" },
  ];

  test("is read the same however it is cut", () => {
    const bytes = Buffer.from(stream);
    for (let at = 0; at <= bytes.length; at++) {
      const reader = new SseReader(1000);
      const events = [...reader.read(bytes.subarray(0, at)), ...reader.read(bytes.subarray(at))];
      expect(events).toEqual(expected);
      expect(reader.lastEventId).toBe("2");
      expect(reader.retryMs).toBe(1500);
    }
  });

  test("is read byte by byte", () => {
    const reader = new SseReader(1000);
    const events = [...Buffer.from(stream)].flatMap((byte) => reader.read(Uint8Array.of(byte)));
    expect(events).toEqual(expected);
  });
});

test("an event over the limit ends the reading with an error", () => {
  const reader = new SseReader(100);
  const chunk = Buffer.from(`data: ${"x".repeat(60)}`);
  expect(reader.read(chunk)).toEqual([]);
  expect(() => reader.read(chunk)).toThrow(RpcError);
});

test("many small events are no large one, and comments are free", () => {
  const reader = new SseReader(100);
  expect(reader.read(Buffer.from("data: x\n\n".repeat(1000)))).toHaveLength(1000);
  for (let index = 0; index < 1000; index++) expect(reader.read(Buffer.from(": keep-alive\n\n"))).toEqual([]);
});
