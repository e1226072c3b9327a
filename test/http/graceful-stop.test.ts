import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { startCli } from "../support/cli-child.ts";
import { listen } from "../support/http-tools.ts";
import { connectLegacy, HttpWire, legacyCall, modern, modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket, toBytes } from "../support/raw-http.ts";

const health = { method: "GET", path: "/health" };
/** Connects many clients at once, says so when all have sent a request, and posts the beginning of each answer. */
const connectMany = `
  const { connect } = require("node:net");
  const { parentPort, workerData } = require("node:worker_threads");
  const { port, clients, connected, request } = workerData;
  const heads = [];
  let sent = 0;
  for (let index = 0; index < clients; index++) {
    const socket = connect(port, "127.0.0.1");
    let head = "";
    socket.write(request, () => {
      if (++sent < clients) return;
      Atomics.store(connected, 0, 1);
      Atomics.notify(connected, 0);
    });
    socket.on("error", () => {});
    socket.on("data", (bytes) => (head += bytes));
    socket.on("close", () => heads.push(head.slice(0, 12)) === clients && parentPort.postMessage(heads));
  }
`;
const withToken = { _meta: { progressToken: "t" } };

describe("a listener that is disposed of", () => {
  test("says so on /health, takes no new calls, and lets those in flight finish", async () => {
    await using at = await listen({ graceMs: 10_000 });
    using wire = new HttpWire(at.port, "2026-07-28");
    using idle = new RawSocket(at.port);
    expect((await idle.send(health).complete).json).toEqual({ status: "ok" });
    const running = wire.open(modernCall("silent")).reply;
    await expect.poll(() => at.waits.get("silent")).toBe("running");
    const stopped = at.listener[Symbol.asyncDispose]();

    const draining = await idle.send(health).complete;
    expect([draining.status, draining.json]).toEqual([503, { status: "draining" }]);
    expect(draining.headers["connection"]).toBe("close");
    const refused = await exchange(at.port, modernPost(modernCall("echo", { message: "hi" })));
    expect(refused.status).toBe(503);
    const data = { code: "channel.closed", delivery: "not_sent" };
    expect(refused.json).toMatchObject({ id: 1, error: { code: -32603, data } });
    expect(refused.headers["retry-after"]).toBeDefined();

    at.steps.allow();
    await running.complete;
    expect(running.json).toMatchObject({ result: { content: [{ text: "spoken" }] } });
    await stopped;
    await expect(exchange(at.port, health)).rejects.toThrow("closed");
  });

  test("still takes the answer that a call in flight waits for", async () => {
    await using at = await listen({ graceMs: 10_000 });
    using wire = await connectLegacy(at.port, "2025-11-25", { roots: {} });
    const { reply } = wire.open(legacyCall(5, "where"));
    const asked = await reply.message(1);
    const stopped = at.listener[Symbol.asyncDispose]();
    const result = { roots: [{ uri: "file:///a" }] };
    expect((await wire.post({ jsonrpc: "2.0", id: asked.id!, result })).status).toBe(202);
    await reply.complete;
    expect(reply.messages.at(-1)!.result).toMatchObject({ content: [{ text: "file:///a" }] });
    await stopped;
  });

  test("still takes back a client that lost its connection, for the result of a call in flight", async () => {
    await using at = await listen({ graceMs: 10_000 });
    using wire = await connectLegacy(at.port);
    const { reply, socket } = wire.open(legacyCall(5, "recite", {}, { progressToken: 1 }));
    at.steps.allow();
    await reply.message(1);
    const stopped = at.listener[Symbol.asyncDispose]();
    socket.cut();
    const rest = await wire.get(reply.events.at(-1)!.id).reply.head;
    at.steps.allow(3);
    await rest.complete;
    expect(rest.messages.at(-1)).toMatchObject({ id: 5, result: { content: [{ text: "one two three" }] } });
    await stopped;
  });

  test("ends the streams of sessions, and aborts what does not finish in time", async () => {
    await using at = await listen({ graceMs: 50 });
    using wire = await connectLegacy(at.port);
    const announced = await wire.get().reply.head;
    const { reply } = wire.open(legacyCall(5, "wait", { key: "k" }, { progressToken: 1 }));
    await reply.message(1);
    await at.listener[Symbol.asyncDispose]();
    expect(at.waits.get("k")).toBe("aborted");
    await announced.complete;
  });

  test("answers calls that do not finish in time that their outcome is not known, in both eras", async () => {
    await using at = await listen({ graceMs: 50 });
    const { registry, listener } = at;
    let begun = 0;
    registry.register("stubborn", {}, async (_, { progress }) => {
      await progress(1);
      begun++;
      return new Promise<string>(() => {});
    });
    using wire = new HttpWire(at.port, "2026-07-28");
    using session = await connectLegacy(at.port);
    const replies = [
      wire.open(modernCall("stubborn")).reply,
      wire.open(modernCall("stubborn", {}, withToken)).reply,
      session.open(legacyCall(1, "stubborn")).reply,
    ];
    await expect.poll(() => begun).toBe(3);
    await listener.close();
    for (const reply of replies) {
      await reply.complete;
      expect(reply.messages.at(-1)).toMatchObject({
        id: 1,
        error: { code: -32603, data: { code: "channel.closed", delivery: "outcome_unknown" } },
      });
    }
  });

  test("answers clients that it had not accepted yet", async () => {
    await using at = await listen({ graceMs: 10_000 });
    const clients = 40;
    const connected = new Int32Array(new SharedArrayBuffer(4));
    const request = toBytes(modernPost(modernCall("echo", { message: "hi" })), `127.0.0.1:${at.port}`);
    const workerData = { port: at.port, clients, connected, request };
    const worker = new Worker(connectMany, { eval: true, workerData });
    const answers = once(worker, "message") as Promise<[readonly string[]]>;
    // The event loop stands still until all of them are connected and have sent their requests.
    Atomics.wait(connected, 0, 0);
    await at.listener.close();
    const [heads] = await answers;
    expect(heads).toHaveLength(clients);
    expect(heads.filter((head) => !/^HTTP\/1\.1 (200|503)/.test(head))).toEqual([]);
    await worker.terminate();
  });

  test("can be disposed of again", async () => {
    const at = await listen();
    await Promise.all([at.listener[Symbol.asyncDispose](), at.listener[Symbol.asyncDispose]()]);
    await at.listener[Symbol.asyncDispose]();
  });
});

test("SIGTERM during a call: it finishes, listen streams get their result, health flips, and the exit code is 0", async () => {
  await using cli = await startCli();
  using wire = new HttpWire(cli.port, "2026-07-28");
  const listening = await wire.post(
    modern("subscriptions/listen", { notifications: { toolsListChanged: true } }, 9),
  );
  await listening.message(1);
  const counting = await wire.post(modernCall("countdown", { from: 3 }, withToken));
  await counting.message(1);
  using probe = new RawSocket(cli.port);
  expect((await probe.send(health).complete).status).toBe(200);
  cli.child.kill("SIGTERM");

  await listening.complete;
  expect(listening.messages.at(-1)).toMatchObject({ id: 9, result: { resultType: "complete" } });
  const statusNow = async (): Promise<RawReply> => exchange(cli.port, health);
  expect(await statusNow()).toMatchObject({ status: 503 });
  expect(counting.isComplete).toBe(false);
  await counting.complete;
  expect(counting.messages.at(-1)).toMatchObject({ result: { content: [{ text: "3 2 1 liftoff" }] } });
  expect(await cli.exited).toEqual({ code: 0, signal: null });
});

test.each(["SIGTERM", "SIGINT"] as const)("%s with nothing to do ends it", async (signal) => {
  await using cli = await startCli();
  using idle = new RawSocket(cli.port);
  await idle.send(health).complete;
  cli.child.kill(signal);
  expect(await cli.exited).toEqual({ code: 0, signal: null });
});
