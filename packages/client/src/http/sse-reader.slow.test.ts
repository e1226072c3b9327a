import { memoryUsage } from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { beforeAll, describe, expect, test } from "vitest";
import { SseReader } from "./reply-reader.ts";

describe("in memory,", () => {
  const megabyte = 1024 * 1024;
  const chunkBytes = 64 * 1024;
  let collect: () => void;

  beforeAll(() => {
    setFlagsFromString("--expose-gc");
    collect = runInNewContext("gc") as () => void;
  });

  const inUse = (): number => {
    const { heapUsed, arrayBuffers } = memoryUsage();
    return heapUsed + arrayBuffers;
  };
  const settle = (): number => {
    collect();
    collect();
    return inUse();
  };

  test("an event in one chunk lies where it came", () => {
    const chunk = Buffer.from("event: message\r\ndata: {}\r\n\r\n");
    const [event] = new SseReader(100).read(chunk);
    expect(event?.data.buffer).toBe(chunk.buffer);
    expect(event?.data.byteOffset).toBe(chunk.byteOffset + chunk.indexOf("{"));
  });

  test("an event of 10 MB takes twice its size while it is read, and nothing once it was handed out", () => {
    const reader = new SseReader(64 * megabyte);
    const count = (10 * megabyte) / chunkBytes;
    const readAll = (): Uint8Array | undefined => {
      reader.read(Buffer.from("event: message\ndata: "));
      for (let index = 0; index < count; index++) reader.read(Buffer.alloc(chunkBytes, "x"));
      return reader.read(Buffer.from("\n\n"))[0]?.data;
    };
    readAll();
    const before = settle();
    let data = readAll();
    const peak = inUse() - before;
    expect(data?.length).toBe(10 * megabyte);
    const held = settle() - before;
    data = undefined;
    const left = settle() - before;
    expect.soft(peak).toBeLessThan(21 * megabyte);
    expect.soft(held).toBeLessThan(11 * megabyte);
    expect.soft(left).toBeLessThan(megabyte / 2);
    expect(reader.read(Buffer.from("data: a\n\n"))).toHaveLength(1);
  });

  const manyLines = "data:\n".repeat(1000);
  const besideMuchElse = `data:${"x".repeat(17_000)}\n:${"y".repeat(45_000)}\n`;
  test.each([
    ["a line that comes byte by byte", "data:", "x", 300_000, 300_000],
    ["data of a million empty lines", "", manyLines, 1000, 1_000_000],
    ["data whose lines come with much else", "", besideMuchElse, 100, 1_700_000],
  ])("%s takes little more than its bytes", (_, start, chunk, count, dataBytes) => {
    const reader = new SseReader(64 * megabyte);
    const before = settle();
    reader.read(Buffer.from(start));
    for (let index = 0; index < count; index++) reader.read(Buffer.from(chunk));
    expect(settle() - before).toBeLessThan(1.2 * dataBytes + megabyte / 4);
    const [event] = [...reader.read(Buffer.from("\n")), ...reader.read(Buffer.from("\n"))];
    expect(event?.data.length).toBeGreaterThanOrEqual(dataBytes - 1);
  });
});
