// Ids of questions to clients: an answer that comes late, to another process or from another client must fit no question.

import { describe, expect, test } from "vitest";
import { talkLegacy } from "./support/conversation.ts";
import { createHttpTools, listen } from "./support/http-tools.ts";
import { connectLegacy, type HttpWire, initializeOf, legacyCall, postOf } from "./support/http-wire.ts";
import { exchange, RawSocket } from "./support/raw-http.ts";

/** 128 bits from a secure source, as text. */
const random = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const capabilities = { elicitation: {} };

describe("the ids of questions are random", () => {
  test("on a channel", async () => {
    const { server } = createHttpTools();
    await using client = await talkLegacy(server, "2025-11-25", { capabilities });
    const ids: unknown[] = [];
    for (let round = 0; round < 3; round++) {
      const answered = client.request("tools/call", { name: "greet" });
      const { id } = await client.wire.take(({ method }) => method === "elicitation/create");
      ids.push(id);
      client.wire.send({ jsonrpc: "2.0", id, result: { action: "decline" } });
      expect((await answered).result).toMatchObject({ content: [{ text: "No: decline" }] });
    }
    for (const id of ids) expect(id).toMatch(random);
    expect(new Set(ids).size).toBe(3);
  });

  test("over HTTP, in each session", async () => {
    await using at = await listen();
    using first = await connectLegacy(at.port, "2025-11-25", capabilities);
    using second = await connectLegacy(at.port, "2025-11-25", capabilities);
    const ask = async (wire: HttpWire, id: number): Promise<unknown> =>
      (await wire.open(legacyCall(id, "greet")).reply.message(1)).id;
    const ids = [await ask(first, 1), await ask(first, 2), await ask(second, 1)];
    for (const id of ids) expect(id).toMatch(random);
    expect(new Set(ids).size).toBe(3);
  });

  test("over HTTP+SSE", async () => {
    await using at = await listen();
    using socket = new RawSocket(at.port);
    const stream = socket.send({ method: "GET", path: "/sse", headers: [["accept", "text/event-stream"]] });
    const path = (await stream.event(1)).data!;
    await exchange(at.port, { ...postOf(initializeOf("2025-11-25", capabilities)), path });
    await exchange(at.port, { ...postOf(legacyCall(1, "greet")), path });
    const question = JSON.parse((await stream.event(3)).data!) as { method: string; id: unknown };
    expect(question.method).toBe("elicitation/create");
    expect(question.id).toMatch(random);
  });
});

test("a question that is withdrawn is named by its id", async () => {
  const { server } = createHttpTools();
  await using client = await talkLegacy(server, "2025-11-25", { capabilities });
  void client.request("tools/call", { name: "greet" }, "call");
  const { id } = await client.wire.take(({ method }) => method === "elicitation/create");
  client.notify("notifications/cancelled", { requestId: "call" });
  expect(await client.notified("notifications/cancelled")).toMatchObject({ requestId: id });
});
