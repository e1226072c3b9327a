import { describe, expect, test } from "vitest";
import { startCli } from "../support/cli-child.ts";
import { listen } from "../support/http-tools.ts";
import { connectLegacy, HttpWire, legacyCall, modern, modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket } from "../support/raw-http.ts";

const health = { method: "GET", path: "/health" };
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
    expect(refused.json).toMatchObject({ id: 1, error: { code: -32603 } });
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
