import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { RawJson } from "../json/raw.ts";
import type { Incoming } from "../rpc/channel.ts";
import { toRequestId } from "../rpc/message.ts";
import { createStreamChannel } from "./stream-channel.ts";

const notification = (method: string, params?: RawJson) =>
  ({ kind: "notification", method, params }) as const;

/** A stream that records its chunks and takes the next one only after `take`. */
function createSlowWritable(): { writable: Writable; chunks: string[]; take: () => void } {
  const chunks: string[] = [];
  let done: (() => void) | undefined;
  const writable = new Writable({
    highWaterMark: 1,
    write: (chunk: Buffer, _encoding, callback) => {
      chunks.push(chunk.toString());
      done = callback;
    },
  });
  return { writable, chunks, take: () => done?.() };
}

async function receive(text: string | Buffer, maxLineBytes?: number): Promise<readonly Incoming[]> {
  const readable = new PassThrough();
  const options = maxLineBytes === undefined ? {} : { maxLineBytes };
  const channel = createStreamChannel(readable, new PassThrough(), options);
  readable.end(text);
  const received: Incoming[] = [];
  for await (const messages of channel) received.push(...messages);
  return received;
}

describe("sending", () => {
  test("what is sent in one turn leaves in one write, one line each", async () => {
    const { writable, chunks, take } = createSlowWritable();
    const channel = createStreamChannel(new PassThrough(), writable);
    const sent = Promise.all(["a", "b", "c"].map((method) => channel.send(notification(method))));
    await expect.poll(() => chunks.length, { interval: 1 }).toBe(1);
    take();
    await sent;
    expect(chunks[0]?.split("\n")).toEqual([
      '{"jsonrpc":"2.0","method":"a"}',
      '{"jsonrpc":"2.0","method":"b"}',
      '{"jsonrpc":"2.0","method":"c"}',
      "",
    ]);
  });

  test("a line break between tokens of forwarded JSON does not make two lines", async () => {
    const writable = new PassThrough();
    const channel = createStreamChannel(new PassThrough(), writable);
    const result = RawJson.parse(Buffer.from('{"a":\n{"jsonrpc":"2.0"}\r}'));
    await channel.send({ kind: "result", id: toRequestId(1), result });
    const [chunk] = (await once(writable, "data")) as [Buffer];
    expect(chunk.toString()).toBe('{"jsonrpc":"2.0","id":1,"result":{"a": {"jsonrpc":"2.0"} }}\n');
  });

  test("what the stream took before its reader vanished may have arrived", async () => {
    const { writable } = createSlowWritable();
    const channel = createStreamChannel(new PassThrough(), writable);
    const sent = channel.send(notification("a"));
    await expect.poll(() => writable.writableNeedDrain, { interval: 1 }).toBe(true);
    writable.destroy();
    await expect(sent).rejects.toMatchObject({ name: "ClosedError", delivery: "outcome_unknown" });
  });

  test("what comes after that was not sent", async () => {
    const { writable } = createSlowWritable();
    const channel = createStreamChannel(new PassThrough(), writable);
    writable.destroy(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    await once(writable, "error").catch(() => {});
    await expect(channel.send(notification("a"))).rejects.toMatchObject({
      delivery: "not_sent",
      cause: { code: "EPIPE" },
    });
  });

  test("a stream that was destroyed before it became a channel refuses at once", async () => {
    const writable = new PassThrough();
    writable.destroy();
    await once(writable, "close");
    const channel = createStreamChannel(new PassThrough(), writable);
    await expect(channel.send(notification("a"))).rejects.toMatchObject({ delivery: "not_sent" });
  });
});

describe("receiving", () => {
  const good = '{"jsonrpc":"2.0","method":"good"}\n';

  test.each([
    ["not JSON", "nonsense\n", -32700],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22, 0x0a]), -32700],
    ["a byte order mark", `\ufeff${good}`, -32700],
    ["not a message", "{}\n", -32600],
    ["too long", `"${"x".repeat(100)}"\n`, -32600],
  ])("a line that is %s is refused and the next one is read", async (_, line, code) => {
    const received = await receive(Buffer.concat([Buffer.from(line), Buffer.from(good)]), 50);
    expect(received).toMatchObject([
      { kind: "invalid", error: { rpcCode: code } },
      { kind: "notification", method: "good" },
    ]);
  });

  test("a line without end ends the channel when more than the limit of it was skipped", async () => {
    const readable = new PassThrough();
    const limits = { maxLineBytes: 50, maxSkippedBytes: 1000 };
    const iterator = createStreamChannel(readable, new PassThrough(), limits)[Symbol.asyncIterator]();
    readable.write("x".repeat(100));
    await expect(iterator.next()).resolves.toMatchObject({ value: [{ kind: "invalid" }] });
    readable.write(`${"x".repeat(500)}\n${good}${"x".repeat(500)}`);
    await expect(iterator.next()).resolves.toMatchObject({
      value: [{ kind: "invalid" }, { method: "good" }, { kind: "invalid" }],
    });
    const next = iterator.next();
    readable.write("x".repeat(1000));
    await expect(next).rejects.toMatchObject({ name: "ClosedError", delivery: "outcome_unknown" });
  });

  test("a line that ends with the stream is read", async () => {
    await expect(receive(good.trim())).resolves.toMatchObject([{ method: "good" }]);
  });

  test.each(["ECONNRESET", "EPIPE", "EIO"])("a stream that breaks with %s has ended", async (code) => {
    const readable = new PassThrough();
    const channel = createStreamChannel(readable, new PassThrough());
    const iterator = channel[Symbol.asyncIterator]();
    const next = iterator.next();
    readable.destroy(Object.assign(new Error(code), { code }));
    await expect(next).resolves.toMatchObject({ done: true });
  });

  test("a stream that breaks for another reason says so", async () => {
    const readable = new PassThrough();
    const iterator = createStreamChannel(readable, new PassThrough())[Symbol.asyncIterator]();
    const next = iterator.next();
    readable.destroy(new Error("disk on fire"));
    await expect(next).rejects.toThrow("disk on fire");
  });
});

describe("disposing", () => {
  test("gives a stalled reader its time, and then cuts it off", async () => {
    const clock = createVirtualClock();
    const { writable } = createSlowWritable();
    const channel = createStreamChannel(new PassThrough(), writable, { closeMs: 1000, clock });
    const failed = channel.send(notification("a")).catch((error: unknown) => error);
    const disposed = channel[Symbol.asyncDispose]();
    await clock.advance(999);
    expect(writable.destroyed).toBe(false);
    await clock.advance(1);
    await disposed;
    expect(writable.destroyed).toBe(true);
    await expect(failed).resolves.toMatchObject({ name: "ClosedError" });
  });
});
