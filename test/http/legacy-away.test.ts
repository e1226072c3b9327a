import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createDeferred } from "../../packages/core/src/async/queue.ts";
import { elicit } from "../../packages/core/src/mcp/question.ts";
import { inputRequired } from "../../packages/core/src/provider/content.ts";
import { createVirtualClock, type VirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { connectLegacy, type HttpWire, legacyCall } from "../support/http-wire.ts";

let clock: VirtualClock;
let tools: Listening;
let wire: HttpWire;

beforeEach(async () => {
  clock = createVirtualClock(1_000_000);
  tools = await listen({ clock });
  wire = await connectLegacy(tools.port, "2025-11-25", { elicitation: { form: {} } });
});
afterEach(async () => {
  wire[Symbol.dispose]();
  await tools[Symbol.asyncDispose]();
});

const callsUnderway = (): number => tools.listener.inspect().sessions[0]?.calls ?? 0;

/** Lets time pass until no call is underway. Gives how long that took. */
async function untilOver(): Promise<number> {
  const since = clock.now();
  const pass = async (): Promise<number> => {
    await clock.advance(1000);
    return callsUnderway();
  };
  await expect.poll(pass).toBe(0);
  return clock.now() - since;
}

describe("a legacy client that loses its connection while it is asked something", () => {
  test("that does not come back for half a minute is asked no longer, and its call goes on", async () => {
    const { reply, socket } = wire.open(legacyCall(1, "greet"));
    const question = await reply.message(1);
    socket.cut();
    expect(await untilOver()).toBeGreaterThanOrEqual(30_000);
    const { id } = reply.events.findLast((event) => event.id !== undefined)!;
    const rest = wire.get(id).reply;
    await rest.complete;
    expect(rest.messages).toMatchObject([
      { method: "notifications/cancelled", params: { requestId: question.id } },
      { id: 1, result: { isError: true } },
    ]);
  });

  test("that comes back in time may take as long as before to answer", async () => {
    const { reply, socket } = wire.open(legacyCall(1, "greet"));
    const question = await reply.message(1);
    socket.cut();
    await clock.advance(20_000);
    const rest = wire.get(reply.events[0]!.id).reply;
    await rest.message(1);
    await clock.advance(120_000);
    expect(callsUnderway()).toBe(1);
    const result = { action: "accept", content: { name: "Ada" } };
    await wire.post({ jsonrpc: "2.0", id: question.id!, result });
    await rest.complete;
    expect(rest.messages.at(-1)).toMatchObject({ id: 1, result: { content: [{ type: "text" }] } });
  });

  test("and could not learn how to come back is not waited for", async () => {
    const [begun, left] = [createDeferred<void>(), createDeferred<void>()];
    tools.registry.register("late", {}, async () => {
      begun.resolve();
      await left.promise;
      return inputRequired({ name: elicit("Name?", {}) });
    });
    const { socket } = wire.open(legacyCall(1, "late"));
    await begun.promise;
    socket.cut();
    for (const id of [2, 3]) await wire.ask({ jsonrpc: "2.0", id, method: "ping" });
    left.resolve();
    expect(await untilOver()).toBeLessThan(30_000);
  });
});
