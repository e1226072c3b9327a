import { describe, expect, test } from "vitest";
import { LineSplitter } from "./line-reader.ts";

describe("a line over the limit", () => {
  test("costs no memory while it is skipped, however long it is", () => {
    const splitter = new LineSplitter(1024 * 1024);
    const chunkBytes = 64 * 1024;
    let reports = 0;
    const before = process.memoryUsage();
    let most = 0;
    // A new chunk each time, as a socket gives them: keeping any of them would add up to a gigabyte.
    for (let sent = 0; sent < 1024 * 1024 * 1024; sent += chunkBytes) {
      for (const _ of splitter.push(Buffer.alloc(chunkBytes, "x"))) reports++;
      if (sent % (64 * 1024 * 1024) === 0) {
        const { arrayBuffers, heapUsed } = process.memoryUsage();
        most = Math.max(most, arrayBuffers + heapUsed - before.arrayBuffers - before.heapUsed);
      }
    }
    expect(reports).toBe(1);
    expect(most).toBeLessThan(256 * 1024 * 1024);
  });

  test("costs memory in proportion to its bytes when it comes a byte at a time", () => {
    const splitter = new LineSplitter(4 * 1024 * 1024);
    const before = process.memoryUsage();
    for (let sent = 0; sent < 2 * 1024 * 1024; sent++) {
      for (const _ of splitter.push(Buffer.from("x"))) expect.unreachable("the line has not ended");
    }
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    expect(heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(64 * 1024 * 1024);
    const [line] = [...splitter.push(Buffer.from("\n"))];
    expect(line).toMatchObject({ kind: "pieced", bytes: { length: 2 * 1024 * 1024 } });
  });
});
