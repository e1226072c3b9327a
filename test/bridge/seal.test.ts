// What a caller of a parked call holds, changed in every way, through the wire.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { createVirtualClock, type VirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { HttpWire, modern, modernMeta } from "../support/http-wire.ts";
import type { Message } from "../support/raw-http.ts";
import { type HttpFront, startHttpFront } from "./support/front.ts";
import { type AskingUpstream, type EraName, startUpstream } from "./support/upstream.ts";

const keys = { alice: "the-key-of-alice-herself", bob: "the-key-of-bob-and-no-other" };
const capabilities = { elicitation: { form: {}, url: {} } };
const refusal = { code: -32602, message: expect.stringMatching(/invalid or expired/) as string };

interface Asked {
  readonly resultType: string;
  readonly requestState: string;
  readonly inputRequests: { readonly [key: string]: unknown };
}

// A parked call of a legacy server, and a modern server's own state inside our seal.
describe.each<EraName>(["legacy", "modern"])("the state of a call of a %s server", (era) => {
  let upstream: AskingUpstream;
  let twin: AskingUpstream;
  let front: HttpFront;
  let clock: VirtualClock;
  let calls = 0;

  beforeAll(async () => {
    clock = createVirtualClock(Date.now());
    upstream = await startUpstream(era, "http");
    twin = await startUpstream(era, "http");
    front = await startHttpFront(
      {
        mcpServers: { up: upstream.entry, twin: twin.entry },
        junctor: { keys: { alice: { env: "ALICE" }, bob: { env: "BOB" } } },
      },
      { env: { ALICE: keys.alice, BOB: keys.bob }, seal: createSeal({ now: () => clock.now() }) },
    );
  });
  afterAll(async () => {
    await front?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
    await twin?.[Symbol.asyncDispose]();
  });

  const wireOf = (caller: keyof typeof keys): HttpWire => {
    const wire = new HttpWire(front.listener.port, "2026-07-28");
    Object.assign(wire.headers, { authorization: `Bearer ${keys[caller]}` });
    return wire;
  };
  const send = (wire: HttpWire, params: { readonly [key: string]: unknown }): Promise<Message> =>
    wire.ask(modern("tools/call", { ...params, _meta: modernMeta(capabilities) }));

  interface Parked {
    readonly params: { readonly name: string; readonly arguments: object };
    readonly retry: { readonly requestState: string; readonly inputResponses: object };
  }
  /** Has a call ask alice something. */
  const park = async (wire: HttpWire): Promise<Parked> => {
    const params = { name: "up__ask", arguments: { nonce: `${era}${++calls}`, rounds: [["form"]] } };
    const { requestState, inputRequests } = (await send(wire, params)).result as unknown as Asked;
    const answer = { action: "accept", content: { nonce: "x" } };
    const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer]));
    return { params, retry: { requestState, inputResponses } };
  };

  test("is refused with any single bit changed, and good afterwards", async () => {
    using wire = wireOf("alice");
    const { params, retry } = await park(wire);
    const before = upstream.events().length;
    const bytes = Buffer.from(retry.requestState, "latin1");
    const changed = Array.from({ length: bytes.length * 8 }, (_, bit) => {
      const copy = Buffer.from(bytes);
      copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      return copy.toString("latin1");
    });
    const batch = 64;
    for (let start = 0; start < changed.length; start += batch) {
      using some = wireOf("alice");
      const answers = await Promise.all(
        changed
          .slice(start, start + batch)
          .map((requestState) => send(some, { ...params, ...retry, requestState })),
      );
      for (const { error } of answers) expect(error).toMatchObject(refusal);
    }
    expect(upstream.events()).toHaveLength(before);
    expect((await send(wire, { ...params, ...retry })).result).toMatchObject({ resultType: "complete" });
  });

  // The bits of what is inside, spelled as they should be: nothing but the seal itself refuses these.
  test("is refused with any single bit of what it spells changed", async () => {
    using wire = wireOf("alice");
    const { params, retry } = await park(wire);
    const before = upstream.events().length;
    const [prefix, text] = [retry.requestState.slice(0, 3), retry.requestState.slice(3)];
    const bytes = Buffer.from(text, "base64url");
    for (let start = 0; start < bytes.length * 8; start += 64) {
      using some = wireOf("alice");
      const answers = await Promise.all(
        Array.from({ length: Math.min(64, bytes.length * 8 - start) }, (_, index) => {
          const copy = Buffer.from(bytes);
          const bit = start + index;
          copy[bit >> 3] = (copy[bit >> 3] ?? 0) ^ (1 << (bit & 7));
          return send(some, { ...params, ...retry, requestState: prefix + copy.toString("base64url") });
        }),
      );
      for (const { error } of answers) expect(error).toMatchObject(refusal);
    }
    expect(upstream.events()).toHaveLength(before);
  });

  test.each<[string, object]>([
    ["another tool", { name: "up__visit" }],
    ["the same tool of another server", { name: "twin__ask" }],
    ["other arguments", { arguments: { nonce: "other", rounds: [["form"]] } }],
    ["no arguments", { arguments: undefined }],
  ])("is not good for %s", async (_, changed) => {
    using wire = wireOf("alice");
    const { params, retry } = await park(wire);
    const before = [upstream.events().length, twin.events().length];
    expect((await send(wire, { ...params, ...changed, ...retry })).error).toMatchObject(refusal);
    expect([upstream.events().length, twin.events().length]).toEqual(before);
    expect((await send(wire, { ...params, ...retry })).result).toMatchObject({ resultType: "complete" });
  });

  test("is not good for the same arguments in another spelling", async () => {
    using wire = wireOf("alice");
    const { params, retry } = await park(wire);
    const before = upstream.events().length;
    const { nonce, rounds } = params.arguments as { nonce: string; rounds: unknown };
    expect((await send(wire, { ...params, arguments: { rounds, nonce }, ...retry })).error).toMatchObject(
      refusal,
    );
    expect(upstream.events()).toHaveLength(before);
  });

  test("is not good for another caller", async () => {
    using alice = wireOf("alice");
    using bob = wireOf("bob");
    const { params, retry } = await park(alice);
    const before = upstream.events().length;
    expect((await send(bob, { ...params, ...retry })).error).toMatchObject(refusal);
    expect(upstream.events()).toHaveLength(before);
    expect((await send(alice, { ...params, ...retry })).result).toMatchObject({ resultType: "complete" });
  });

  test("is not good at a later time", async () => {
    using wire = wireOf("alice");
    const { params, retry } = await park(wire);
    const before = upstream.events().length;
    await clock.advance(24 * 60 * 60_000);
    expect((await send(wire, { ...params, ...retry })).error).toMatchObject(refusal);
    expect(upstream.events()).toHaveLength(before);
  });
});
