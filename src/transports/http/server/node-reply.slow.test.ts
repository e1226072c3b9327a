import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createNodeSink } from "./node-reply.ts";

test("a reader that is slow, but reads, is not cut however long one frame takes", async () => {
  // Longer than a busy machine keeps us from reading.
  const stallMs = 3000;
  const cuts: string[] = [];
  const server = createServer();
  const answering = new Promise<ServerResponse>((resolve) => {
    server.once("request", (_, response) => resolve(response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const reader = connect((server.address() as AddressInfo).port, "127.0.0.1");
  onTestFinished(() => {
    reader.destroy();
    server.close();
    server.closeAllConnections();
  });
  reader.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const onCut = (reason: string): void => void cuts.push(reason);
  const sink = createNodeSink(await answering, { maxBufferBytes: 1024 * 1024, stallMs, onCut });
  let taken = 0;
  const startedAt = performance.now();
  reader.on("data", (bytes: Buffer) => {
    taken += bytes.length;
    if (performance.now() - startedAt > 1.5 * stallMs) return;
    reader.pause();
    setTimeout(() => reader.resume(), 20);
  });
  const large = "x".repeat(32 * 1024 * 1024);
  await sink.write(large);
  expect(performance.now() - startedAt).toBeGreaterThan(stallMs);
  expect(cuts).toEqual([]);
  expect(sink.isOpen).toBe(true);
  sink.end();
  await expect.poll(() => taken).toBeGreaterThan(large.length);
});
