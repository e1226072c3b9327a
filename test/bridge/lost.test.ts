// A parked call that is no longer there when its caller comes back: the tool had begun, and the caller must know it.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import type { GatewayOptions } from "../../packages/junctor/src/gateway/options.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { HttpWire, modern, modernMeta } from "../support/http-wire.ts";
import type { Message } from "../support/raw-http.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { type AskingUpstream, startUpstream } from "./support/upstream.ts";

const secret = "a secret of more than thirty-two characters";
const capabilities = { elicitation: { form: {} } };
const abandoned = {
  code: -32603,
  message: expect.stringMatching(/had begun.*was not made again/) as string,
  data: { code: "upstream.abandoned", server: "up", delivery: "outcome_unknown" },
};

describe("a parked call that is lost", () => {
  let upstream: AskingUpstream;
  let calls = 0;

  beforeAll(async () => {
    upstream = await startUpstream("legacy", "http");
  });
  afterAll(() => upstream?.[Symbol.asyncDispose]());

  const start = (options: GatewayOptions = {}): Promise<HttpFront> =>
    startHttpFront({ mcpServers: { up: upstream.entry } }, { seal: createSeal({ secret }), ...options });

  const send = async (
    { listener }: HttpFront,
    params: { readonly [member: string]: unknown },
  ): Promise<Message> => {
    using wire = new HttpWire(listener.port, "2026-07-28");
    return await wire.ask(modern("tools/call", { ...params, _meta: modernMeta(capabilities) }));
  };

  /** Has a call ask something. One that is given up is answered that the user closed the form. Gives back the request that answers it. */
  const park = async (front: HttpFront): Promise<{ readonly [member: string]: unknown }> => {
    const params = { name: "up__ask", arguments: { nonce: `lost${++calls}`, rounds: [["form"]] } };
    const { result } = await send(front, params);
    const { requestState, inputRequests } = result as { requestState: string; inputRequests: object };
    const answer = { action: "accept", content: { nonce: "x" } };
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]));
    return { ...params, requestState, inputResponses };
  };

  test("by a restart is reported with an unknown outcome", async () => {
    const first = await start();
    const answered = await park(first);
    await first[Symbol.asyncDispose]();
    await using second = await start();
    expect((await send(second, answered)).error).toEqual(abandoned);
  });

  test("because its caller came too late is reported as such", async () => {
    await using front = await start({ parking: { ttlMs: 1 } });
    const answered = await park(front);
    await expect.poll(() => upstream.count("answered", `lost${calls}`)).toBe(1);
    expect((await send(front, answered)).error).toEqual(abandoned);
  });

  test("is reported as such also an hour later", async () => {
    const clock = createVirtualClock(Date.now());
    const seal = createSeal({ secret, now: () => clock.now() });
    await using front = await start({ seal, parking: { ttlMs: 1 } });
    const answered = await park(front);
    await expect.poll(() => upstream.count("answered", `lost${calls}`)).toBe(1);
    await clock.advance(3_600_000);
    expect((await send(front, answered)).error).toEqual(abandoned);
  });

  test("with its server, which an edit removed, is reported as such", async () => {
    await using front = await start();
    const answered = await park(front);
    await front.gateway.update({ mcpServers: {} });
    expect((await send(front, answered)).error).toEqual(abandoned);
  });

  test("a state of another secret is refused as invalid", async () => {
    const first = await start({ seal: createSeal() });
    const answered = await park(first);
    await first[Symbol.asyncDispose]();
    await using second = await start();
    const { error } = await send(second, answered);
    expect(error).toMatchObject({
      code: -32602,
      message: expect.stringContaining("invalid or expired") as string,
    });
    expect(error).not.toHaveProperty("data");
  });
});
