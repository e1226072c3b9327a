import { expect, test } from "vitest";
import { listen } from "../support/http-tools.ts";
import { connectLegacy, legacyCall } from "../support/http-wire.ts";

const canElicit = { elicitation: { form: {} } };

test("a call that is cancelled while its client is asked something takes the question back, and says no more", async () => {
  await using tools = await listen();
  using wire = await connectLegacy(tools.port, "2025-11-25", canElicit);
  const reply = await wire.post(legacyCall(1, "greet"));
  const question = await reply.message(1);
  await wire.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  await reply.complete;
  expect(reply.messages).toMatchObject([
    { id: question.id, method: "elicitation/create" },
    { method: "notifications/cancelled", params: { requestId: question.id } },
  ]);
});

test("only the question of the call that is cancelled is taken back", async () => {
  await using tools = await listen();
  using wire = await connectLegacy(tools.port, "2025-11-25", canElicit);
  const [left, kept] = [await wire.post(legacyCall(1, "greet")), await wire.post(legacyCall(2, "greet"))];
  const question = await kept.message(1);
  await left.message(1);
  await wire.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
  await left.complete;
  const result = { action: "accept", content: { name: "Ada" } };
  await wire.post({ jsonrpc: "2.0", id: question.id!, result });
  await kept.complete;
  expect(kept.messages).toMatchObject([{ method: "elicitation/create" }, { id: 2, result: {} }]);
});
