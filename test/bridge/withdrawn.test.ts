// What a legacy client over HTTP hears when it cancels a call in the middle of which it is being asked something.

import { expect, test } from "vitest";
import { connectLegacy, legacyCall } from "../support/http-wire.ts";
import { startHttpFront } from "./support/front.ts";
import { type EraName, startUpstream, type Way } from "./support/upstream.ts";

const cells = (["legacy", "modern"] as const).flatMap((era: EraName) =>
  (["http", "stdio"] as const).map((way: Way) => [era, way] as const),
);

test.each(cells)(
  "the question of a %s server over %s is withdrawn with the call, and nothing follows",
  async (era, way) => {
    await using upstream = await startUpstream(era, way);
    await using front = await startHttpFront({ mcpServers: { up: upstream.entry } });
    using wire = await connectLegacy(front.listener.port, "2025-11-25", { elicitation: { form: {} } });
    const call = legacyCall(7, "up__ask", { nonce: "n1", rounds: [["form"]] }, { progressToken: 1 });
    const reply = await wire.post(call);
    const question = await reply.message(1);
    expect(question).toMatchObject({ method: "elicitation/create" });
    await wire.post({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 7 } });
    await reply.complete;
    expect(reply.messages.slice(1)).toEqual([
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: question.id } },
    ]);
    if (era === "legacy") await expect.poll(() => upstream.count("cancelled", "n1")).toBe(1);
  },
);
