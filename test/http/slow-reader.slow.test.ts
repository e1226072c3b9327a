import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { cpuMsSince, cpuTime } from "../../packages/core/src/async/clock.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { connectLegacy, legacyCall, modernCall, modernPost } from "../support/http-wire.ts";
import { RawSocket, toBytes } from "../support/raw-http.ts";

const frames = 1600;
const piece = "x".repeat(64 * 1024);
const withToken = { _meta: { progressToken: "t" } };

interface Flood extends AsyncDisposable {
  readonly at: Listening;
  /** How many pieces of the 100 MB each flood has let go. */
  readonly sent: number[];
}

async function listenToFlood(): Promise<Flood> {
  const at = await listen();
  const sent: number[] = [];
  at.registry.register("flood", {}, async function* () {
    const index = sent.push(0) - 1;
    for (let count = 1; count <= frames; count++) {
      yield { type: "progress", progress: count, message: piece };
      sent[index] = count;
    }
    return "flooded";
  });
  at.registry.register(
    "gush",
    { description: "Does not wait for anybody." },
    async (_, { progress, signal }) => {
      for (let count = 1; count <= frames && !signal.aborted; count++) {
        void progress(count, undefined, piece);
        if (count % 8 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      return "gushed";
    },
  );
  return { at, sent, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
}

/** Resolves when a value has not changed for a while. */
async function untilStill(read: () => number): Promise<number> {
  let last = -1;
  let calm = 0;
  await expect
    .poll(() => (calm = last === (last = read()) ? calm + 1 : 0), { interval: 20 })
    .toBeGreaterThan(3);
  return last;
}

/** The CPU time of many calls, in ms: other programs that keep the machine busy do not add to it. */
async function costOfCalls(at: Listening): Promise<number> {
  using socket = new RawSocket(at.port);
  const before = cpuTime();
  for (let index = 0; index < 200; index++)
    await socket.send(modernPost(modernCall("echo", { message: "hi" }))).complete;
  return cpuMsSince(before);
}

describe("a reader that stalls in a stream of 100 MB", () => {
  test("stops the tool, slows nobody else, and gets all of it when it reads on", async () => {
    await using flood = await listenToFlood();
    const { at, sent } = flood;
    await costOfCalls(at); // To warm up.
    const alone = await costOfCalls(at);
    const stalled = Array.from({ length: 10 }, () => {
      const socket = new RawSocket(at.port);
      socket.send(modernPost(modernCall("flood", {}, withToken)));
      socket.socket.pause();
      return socket;
    });
    await expect.poll(() => sent.length).toBe(10);
    const total = (): number => sent.reduce((sum, count) => sum + count, 0);
    await untilStill(total);
    expect(Math.max(...sent)).toBeLessThan(frames / 2);
    expect(await costOfCalls(at)).toBeLessThan(5 * alone);
    expect(await untilStill(total)).toBeLessThan(10 * (frames / 2));
    for (const socket of stalled) socket[Symbol.dispose]();

    const bytes = toBytes(modernPost(modernCall("flood", {}, withToken)), `127.0.0.1:${at.port}`);
    const reader = connect(at.port, "127.0.0.1", () => reader.write(bytes));
    reader.pause();
    await expect.poll(() => sent.length).toBe(11);
    await untilStill(() => sent[10]!);
    let taken = 0;
    let end = "";
    reader.on("data", (chunk: Buffer) => {
      taken += chunk.length;
      end = (end + chunk.toString("latin1")).slice(-500);
    });
    reader.resume();
    await expect.poll(() => end).toContain('"flooded"');
    expect(taken).toBeGreaterThan(frames * piece.length);
    reader.destroy();
    expect(at.warnings).toEqual([]);
  });

  test("is cut, with the reason in the log, when the tool does not wait; and the tool is aborted", async () => {
    await using flood = await listenToFlood();
    using socket = new RawSocket(flood.at.port);
    const reply = socket.send(modernPost(modernCall("gush", {}, withToken)));
    socket.socket.pause();
    await expect.poll(() => flood.at.warnings).toHaveLength(1);
    expect(flood.at.warnings[0]).toMatch(/^A client was cut off: the reader is slow/);
    socket.socket.resume();
    await reply.closed;
    expect(reply.isComplete).toBe(false);
  });

  test("as a legacy client is cut too, its call goes on, and it has the end when it comes back", async () => {
    await using flood = await listenToFlood();
    using wire = await connectLegacy(flood.at.port);
    const { reply, socket } = wire.open(legacyCall(5, "gush", {}, { progressToken: 1 }));
    await reply.event(1);
    socket.socket.pause();
    await expect.poll(() => flood.at.warnings).toHaveLength(1);
    await expect
      .poll(async () => (await wire.ask(legacyCall(5, "echo", { message: "" }))).error)
      .toBeUndefined();
    const [stream] = reply.events[0]!.id!.split(":");
    const rest = await wire.get(`${stream}:${frames}`).reply.complete;
    expect(rest.messages).toMatchObject([{ id: 5, result: { content: [{ text: "gushed" }] } }]);
  });
});
