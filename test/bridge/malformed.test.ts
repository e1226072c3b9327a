// Answers of legacy clients that are none.

import { expect, test } from "vitest";
import { connectLegacy, legacyCall } from "../support/http-wire.ts";
import { startHttpFront } from "./support/front.ts";
import { startUpstream } from "./support/upstream.ts";

test.each([[{ action: "banana" }], [7], [{ action: "accept", content: { nonce: 7 } }]])(
  "a modern server is not called again with %j, and the model is told",
  async (given) => {
    await using upstream = await startUpstream("modern", "http");
    await using front = await startHttpFront({ mcpServers: { up: upstream.entry } });
    using wire = await connectLegacy(front.listener.port, "2025-11-25", { elicitation: { form: {} } });
    const reply = await wire.post(legacyCall(1, "up__ask", { nonce: "n1", rounds: [["form"]] }));
    const { id } = await reply.message(1);
    await wire.post({ jsonrpc: "2.0", id: id!, result: given });
    const answer = await reply.message(2);
    const text = "The client's answer to elicitation/create does not fit the question.";
    expect(answer.result).toMatchObject({ isError: true, content: [{ text }] });
    expect(upstream.count("done", "n1")).toBe(0);
  },
);
