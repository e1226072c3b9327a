// A caller that wants to hear of progress only when it comes back to its parked call.

import { expect, test } from "vitest";
import { HttpWire, modernCall, modernMeta } from "../support/http-wire.ts";
import { startHttpFront } from "./support/front.ts";
import { startUpstream, type Way } from "./support/upstream.ts";

test.each<Way>(["http", "stdio"])(
  "progress of a legacy server over %s reaches it from then on",
  async (way) => {
    await using upstream = await startUpstream("legacy", way);
    await using front = await startHttpFront({ mcpServers: { up: upstream.entry } });
    using wire = new HttpWire(front.listener.port, "2026-07-28");
    const capabilities = { elicitation: { form: {} } };
    const args = { nonce: "n1", rounds: [["form"]] };
    const asked = await wire.ask(modernCall("up__ask", args, { _meta: modernMeta(capabilities) }));
    const retry = {
      requestState: asked.result?.["requestState"],
      inputResponses: { "ask-1": { action: "accept", content: { nonce: "n1" } } },
      _meta: modernMeta(capabilities, { progressToken: "late" }),
    };
    const reply = await (await wire.post(modernCall("up__ask", args, retry))).complete;
    expect(reply.messages).toMatchObject([
      {
        method: "notifications/progress",
        params: { progressToken: "late", progress: 1, message: "round 0" },
      },
      { result: { resultType: "complete" } },
    ]);
  },
);
