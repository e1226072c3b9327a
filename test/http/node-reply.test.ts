import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { createNodeSink } from "../../packages/server/src/http/node-reply.ts";
import type { FrameSink } from "../../packages/server/src/http/reply.ts";

const mebibyte = 1024 * 1024;
const frame = "x".repeat(64 * 1024);

/** One answer that is being written, and the socket of whoever reads it. */
interface Pair {
  readonly sink: FrameSink;
  readonly response: ServerResponse;
  readonly reader: Socket;
  readonly cuts: string[];
  readonly closed: { count: number };
}

let closeAll: () => void = () => {};
afterEach(() => closeAll());

async function connectPair(stallMs = 60_000): Promise<Pair> {
  const cuts: string[] = [];
  const closed = { count: 0 };
  const server = createServer();
  const answering = new Promise<ServerResponse>((resolve) => {
    server.once("request", (_, response) => resolve(response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const reader = connect((server.address() as AddressInfo).port, "127.0.0.1");
  reader.on("error", () => {});
  reader.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const response = await answering;
  const limits = { maxBufferBytes: mebibyte, stallMs, onCut: (reason: string) => void cuts.push(reason) };
  response.once("close", () => void closed.count++);
  const sink = createNodeSink(response, limits);
  closeAll = () => {
    reader.destroy();
    server.close();
    server.closeAllConnections();
  };
  return { sink, response, reader, cuts, closed };
}

/** Resolves with a value once it has not changed for a while. */
async function settled(read: () => number): Promise<number> {
  let last = -1;
  let calm = 0;
  await expect
    .poll(() => (calm = last === (last = read()) ? calm + 1 : 0), { interval: 10 })
    .toBeGreaterThan(3);
  return last;
}

describe("a reader that takes nothing", () => {
  let pair: Pair;
  beforeEach(async () => void (pair = await connectPair()));

  test("stops a writer that waits, with at most a mebibyte held for it", async () => {
    const { sink, response } = pair;
    let written = 0;
    const writing = (async () => {
      for (; written < 1600 && sink.isOpen; written++) await sink.write(frame);
    })();
    const stuckAt = await settled(() => written);
    expect(stuckAt).toBeLessThan(1600);
    expect(response.writableLength).toBeLessThanOrEqual(mebibyte);
    expect(pair.cuts).toEqual([]);
    pair.reader.destroy();
    await writing;
  });

  test("is cut, with the reason, by a writer that does not wait; the writes do not fail", async () => {
    const { sink, response, cuts, closed } = pair;
    let most = 0;
    const writes: unknown[] = [];
    for (let index = 0; index < 1600; index++) {
      writes.push(sink.write(frame));
      most = Math.max(most, response.writableLength);
    }
    await Promise.all(writes);
    expect(cuts).toEqual([expect.stringMatching(/^the reader is slow: [0-9]+ bytes wait for it$/)]);
    expect(most).toBeLessThanOrEqual(mebibyte);
    expect(sink.isOpen).toBe(false);
    await expect.poll(() => closed.count).toBe(1);
  });

  test("is cut when it took nothing for as long as it may", async () => {
    closeAll();
    const { sink, cuts } = await connectPair(50);
    while (sink.isOpen) await sink.write(frame);
    expect(cuts).toEqual(["the reader took nothing for 50 ms"]);
  });

  test("is cut for that also while it sends", async () => {
    closeAll();
    const { sink, cuts, reader } = await connectPair(50);
    // Empty lines before a request, which HTTP lets pass.
    const timer = setInterval(() => reader.write("\r\n"), 5);
    onTestFinished(() => clearInterval(timer));
    while (sink.isOpen) await sink.write(frame);
    expect(cuts).toEqual(["the reader took nothing for 50 ms"]);
  });
});

test("a reader that is slow, but reads, is not cut however long one frame takes", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const stallMs = 60_000;
  const { sink, response, reader, cuts } = await connectPair(stallMs);
  const large = "x".repeat(32 * mebibyte);
  let [taken, wanted] = [0, 0];
  reader.on("data", (bytes: Buffer) => {
    taken += bytes.length;
    if (taken >= wanted) reader.pause();
  });
  const written = sink.write(large);
  const queued = (): number => (response.socket as QueueingSocket | null)?._handle?.writeQueueSize ?? 0;
  await expect.poll(queued).toBeGreaterThan(0);
  let rests = 0;
  for (let before = queued(); before > 0; before = queued(), rests++) {
    // The reader takes until some of the frame has left this process, and rests for most of the time that it may.
    while (queued() === before) {
      wanted = taken + mebibyte;
      reader.resume();
      await expect.poll(() => taken >= wanted || queued() < before).toBe(true);
    }
    vi.advanceTimersByTime(0.75 * stallMs);
  }
  await written;
  expect(rests).toBeGreaterThan(2);
  expect(cuts).toEqual([]);
  expect(sink.isOpen).toBe(true);
  wanted = Infinity;
  reader.resume();
  sink.end();
  await expect.poll(() => taken).toBeGreaterThan(large.length);
});

/** Node's socket with the number of bytes that the system has not taken yet. */
interface QueueingSocket {
  readonly _handle?: { readonly writeQueueSize: number } | null;
}

test("a reader that keeps up is sent frames of any size", async () => {
  const { sink, response, reader, cuts } = await connectPair();
  let taken = 0;
  reader.on("data", (bytes: Buffer) => (taken += bytes.length));
  response.cork(); // So that the small frame still waits when the large one comes.
  await sink.write("small");
  const large = sink.write("x".repeat(3 * mebibyte));
  response.uncork();
  await large;
  expect(cuts).toEqual([]);
  await expect.poll(() => taken).toBeGreaterThan(3 * mebibyte);
});

describe("an answer", () => {
  test("to a client that is gone is written nowhere, and nothing is thrown", async () => {
    const { sink, reader, closed, cuts } = await connectPair();
    reader.destroy();
    await expect.poll(() => closed.count).toBe(1);
    await sink.write(frame);
    sink.end();
    sink.cut("again");
    expect([sink.isOpen, cuts]).toEqual([false, []]);
  });

  test("can be cut once, and then has no proper end", async () => {
    const { sink, reader, cuts } = await connectPair();
    let heard = "";
    reader.on("data", (bytes: Buffer) => (heard += bytes.toString()));
    await sink.write("data: x\n\n");
    await expect.poll(() => heard).toContain("data: x");
    sink.cut("enough");
    sink.cut("enough");
    sink.end();
    await new Promise((resolve) => reader.once("close", resolve));
    expect(cuts).toEqual(["enough"]);
    expect(heard.endsWith("0\r\n\r\n")).toBe(false);
  });
});
