import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Listening, listen } from "../support/http-tools.ts";
import { connectLegacy, type HttpWire, json } from "../support/http-wire.ts";
import type { RawReply } from "../support/raw-http.ts";

const listChanged = "notifications/tools/list_changed";
const updated = "notifications/resources/updated";

let at: Listening;
beforeEach(async () => void (at = await listen()));
afterEach(() => at[Symbol.asyncDispose]());

let sprouts = 0;
function grow(): void {
  at.registry.register(`sprout_${sprouts++}`, {}, () => "grown");
}

function subscribe(wire: HttpWire, uri: string): Promise<unknown> {
  return wire.ask({ jsonrpc: "2.0", id: "s", method: "resources/subscribe", params: { uri } });
}

function methodsOf(reply: RawReply): readonly unknown[] {
  return reply.messages.map(({ method }) => method);
}

/** Changes are reported in a microtask; a request of our own that was answered comes after them. */
async function settle(wire: HttpWire): Promise<void> {
  await wire.ask({ jsonrpc: "2.0", id: "settle", method: "ping" });
}

describe.each(["2025-03-26", "2025-06-18", "2025-11-25"] as const)(
  "the stream of a session of %s",
  (revision) => {
    let wire: HttpWire;
    beforeEach(async () => void (wire = await connectLegacy(at.port, revision)));
    afterEach(() => wire[Symbol.dispose]());

    test("carries what changed, as it changes", async () => {
      const reply = await wire.get().reply.head;
      expect([reply.status, reply.isStream]).toEqual([200, true]);
      expect(reply.headers["mcp-session-id"]).toBe(wire.sessionId);
      grow();
      await reply.message(1);
      await subscribe(wire, "note://today");
      at.resources.updated("note://today");
      await reply.message(2);
      expect(methodsOf(reply)).toEqual([listChanged, updated]);
      expect(reply.messages[1]!.params).toEqual({ uri: "note://today" });
    });

    test("says what changed before it was opened, once for each thing", async () => {
      await subscribe(wire, "note://today");
      for (let round = 0; round < 5; round++) {
        grow();
        at.resources.updated("note://today");
        await settle(wire);
      }
      const reply = await wire.get().reply.head;
      await reply.message(2);
      await settle(wire);
      expect(new Set(methodsOf(reply))).toEqual(new Set([updated, listChanged]));
      expect(reply.messages).toHaveLength(2);
    });

    test("says nothing of what was not subscribed to", async () => {
      const reply = await wire.get().reply.head;
      at.resources.updated("note://today");
      grow();
      await reply.message(1);
      expect(methodsOf(reply)).toEqual([listChanged]);
    });

    test("is one: a second is refused with 409, and the first goes on", async () => {
      const first = await wire.get().reply.head;
      const second = await wire.get().reply.complete;
      expect([second.status, second.headers["content-type"]]).toEqual([409, json]);
      grow();
      await first.message(1);
      expect(methodsOf(first)).toEqual([listChanged]);
    });

    test("can be opened again when it was lost, and what changed meanwhile comes then", async () => {
      const { reply, socket } = wire.get();
      await reply.head;
      socket.cut();
      await settle(wire);
      grow();
      const isOpen = async (): Promise<RawReply> => wire.get().reply.head;
      let again = await isOpen();
      while (again.status === 409) again = await isOpen(); // The server has yet to notice that it was cut.
      await again.message(1);
      expect(methodsOf(again)).toEqual([listChanged]);
    });

    test("goes on where it broke", async () => {
      const { reply, socket } = wire.get();
      grow();
      const { id } = await reply.event(revision === "2025-11-25" ? 2 : 1);
      socket.cut();
      const again = wire.get(id).reply;
      await again.head;
      grow();
      await again.message(1);
      expect(methodsOf(again)).toEqual([listChanged]);
    });

    test("is primed for clients of 2025-11-25 only", async () => {
      const reply = await wire.get().reply.head;
      grow();
      await reply.message(1);
      const isPrimed = reply.events[0]!.data === "";
      expect(isPrimed).toBe(revision === "2025-11-25");
    });

    test("needs a client that takes one", async () => {
      expect((await wire.get(undefined, { accept: json }).reply.complete).status).toBe(406);
      expect((await wire.get(undefined, { accept: undefined }).reply.head).status).toBe(200);
    });
  },
);

test("of more than 1,024 things that changed before a stream was opened, the oldest are forgotten", async () => {
  using wire = await connectLegacy(at.port);
  await subscribe(wire, "note://today");
  for (let index = 0; index < 1100; index++) at.resources.updated(`note://today/${index}`);
  await settle(wire);
  const reply = await wire.get().reply.head;
  at.resources.updated("note://today/last");
  await reply.until(
    "the last came",
    ({ messages }) => messages.at(-1)?.params?.["uri"] === "note://today/last",
  );
  expect(reply.messages).toHaveLength(1025);
  expect(reply.messages[0]?.params).toEqual({ uri: "note://today/76" });
});

test("each session is notified of a change once, on its own stream and on no other", async () => {
  const wires = await Promise.all(Array.from({ length: 20 }, () => connectLegacy(at.port)));
  const streams = await Promise.all(wires.map((wire) => wire.get().reply.head));
  await subscribe(wires[0]!, "note://today");
  at.resources.updated("note://today");
  grow();
  await Promise.all(streams.map((reply, index) => reply.message(index === 0 ? 2 : 1)));
  await settle(wires[1]!);
  expect(streams.map((reply) => reply.messages.length)).toEqual([2, ...wires.slice(1).map(() => 1)]);
  for (const wire of wires) wire[Symbol.dispose]();
});

test("two that open the stream in the same instant get one of them, and one refusal", async () => {
  // The check of who they are holds both up, so that they go on in the same turn.
  const waiting: (() => void)[] = [];
  const authenticate = async (header: (name: string) => string | undefined): Promise<string> => {
    if (header("x-hold") !== undefined) await new Promise<void>((resolve) => waiting.push(resolve));
    return "alice";
  };
  await using held = await listen({ authenticate });
  using wire = await connectLegacy(held.port);
  const both = [wire.get(undefined, { "x-hold": "1" }), wire.get(undefined, { "x-hold": "1" })];
  await expect.poll(() => waiting.length).toBe(2);
  for (const go of waiting) go();
  const statuses = await Promise.all(both.map(async ({ reply }) => (await reply.head).status));
  expect(new Set(statuses)).toEqual(new Set([200, 409]));
});
