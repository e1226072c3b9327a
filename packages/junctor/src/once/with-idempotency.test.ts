import { createDeferred } from "@junctor/core/async";
import { RpcError, UpstreamError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { metaKeys } from "@junctor/core/mcp";
import { createCallContext, createOperation, type Operation, type Outcome } from "@junctor/core/provider";
import { createRegistry, elicit, inputRequired } from "@junctor/server";
import { hungUp } from "@junctor/server/internal";
import { expect, test } from "vitest";
import { createVirtualClock } from "../testing/index.ts";
import { KeptCalls } from "./kept-calls.ts";
import { withIdempotency } from "./with-idempotency.ts";

const withKey = (key: unknown, caller?: string): Parameters<typeof createCallContext>[0] => ({
  caller,
  meta: RawJson.fromValue({ [metaKeys.idempotencyKey]: key }),
});
const call = (args: object = {}, name = "charge"): Operation =>
  createOperation("tools/call", name, { arguments: args });

const input = { type: "object" } as const;

/** A registry whose tool says how often it ran. */
function createShop(work: () => unknown = () => undefined) {
  const registry = createRegistry();
  const state = { runs: 0 };
  registry.register("charge", { description: "Charges", input }, async () => {
    state.runs++;
    await work();
    return `charge ${state.runs}`;
  });
  return { registry, state };
}

function textOf(outcome: Outcome): string {
  return outcome.kind === "complete" ? outcome.result.text : outcome.kind;
}

test("a call with a key runs once, and its retry gets the same bytes", async () => {
  const { registry, state } = createShop();
  const provider = withIdempotency(registry);
  const first = await provider.call(call({ a: 1 }), createCallContext(withKey("k1")));
  const again = await provider.call(call({ a: 1 }), createCallContext(withKey("k1")));
  expect(textOf(again)).toBe(textOf(first));
  expect(state.runs).toBe(1);
  await provider.call(call({ a: 1 }), createCallContext(withKey("k2")));
  await provider.call(call({ a: 1 }), createCallContext());
  await provider.call(call({ a: 1 }), createCallContext());
  expect(state.runs).toBe(4);
});

test("a hundred duplicates at once run once", async () => {
  const gate = createDeferred<void>();
  const { registry, state } = createShop(() => gate.promise);
  const provider = withIdempotency(registry);
  const calls = Array.from({ length: 100 }, async () =>
    provider.call(call(), createCallContext(withKey("k"))),
  );
  gate.resolve();
  const ends = await Promise.all(calls);
  expect(new Set(ends.map(textOf)).size).toBe(1);
  expect(state.runs).toBe(1);
});

test("other arguments, or another tool, under the same key are refused, and nothing runs", async () => {
  const { registry, state } = createShop();
  registry.register("other", { description: "Other", input }, () => "other");
  const provider = withIdempotency(registry);
  await provider.call(call({ a: 1 }), createCallContext(withKey("k")));
  const reused = { code: "rpc.key_reused", data: { delivery: "not_sent" } };
  await expect(provider.call(call({ a: 2 }), createCallContext(withKey("k")))).rejects.toMatchObject(reused);
  await expect(provider.call(call({ a: 1 }, "other"), createCallContext(withKey("k")))).rejects.toMatchObject(
    reused,
  );
  // 1 and 1.0 are two spellings that a server may take for two numbers.
  const spelled = createOperation("tools/call", "charge", { arguments: RawJson.fromText('{"a":1.0}') });
  await expect(provider.call(spelled, createCallContext(withKey("k")))).rejects.toMatchObject(reused);
  expect(state.runs).toBe(1);
});

test("the same key of another caller is another key", async () => {
  const { registry, state } = createShop();
  const provider = withIdempotency(registry);
  for (const caller of ["ann", "bob", undefined, ""]) {
    await provider.call(call({ of: 1 }), createCallContext(withKey("k", caller)));
    await provider.call(call({ of: 1 }), createCallContext(withKey("k", caller)));
  }
  expect(state.runs).toBe(4);
});

test.each([
  ["a number", 7],
  ["an empty text", ""],
  ["white space", "a b"],
  ["a control character", "a\nb"],
  ["256 characters", "k".repeat(256)],
])("a key that is %s is refused, and nothing runs", async (_, key) => {
  const { registry, state } = createShop();
  const refused = withIdempotency(registry).call(call(), createCallContext(withKey(key)));
  await expect(refused).rejects.toMatchObject({ code: "rpc.invalid_params" });
  expect(state.runs).toBe(0);
});

test("the key may be a header or the member of the proposal, and two that differ are refused", async () => {
  const { registry, state } = createShop();
  const provider = withIdempotency(registry);
  const params = RawJson.fromValue({ name: "charge", arguments: {}, idempotencyKey: "k" });
  const headers = (name: string): string | undefined => (name === "idempotency-key" ? "k" : undefined);
  await provider.call({ ...call(), params }, createCallContext());
  await provider.call(call(), createCallContext({ headers }));
  await provider.call(call(), createCallContext(withKey("k")));
  expect(state.runs).toBe(1);
  const both = { headers, ...withKey("other") };
  await expect(provider.call(call(), createCallContext(both))).rejects.toThrow("given twice");
});

test("a call that was not sent gives its key back", async () => {
  let isDown = true;
  const { registry, state } = createShop(() => {
    if (isDown) throw new UpstreamError("unavailable", "down", { server: "a", delivery: "not_sent" });
  });
  const provider = withIdempotency({
    ...registry,
    list: registry.list,
    call: async (operation, context) => {
      if (isDown) throw new UpstreamError("unavailable", "down", { server: "a", delivery: "not_sent" });
      return registry.call(operation, context);
    },
    offers: registry.offers,
  });
  await expect(provider.call(call(), createCallContext(withKey("k")))).rejects.toThrow("down");
  isDown = false;
  await provider.call(call(), createCallContext(withKey("k")));
  expect(state.runs).toBe(1);
});

test("a call whose outcome is unknown is not made again, and says so", async () => {
  let runs = 0;
  const { registry } = createShop();
  const provider = withIdempotency({
    ...registry,
    list: registry.list,
    call: () => {
      runs++;
      throw new UpstreamError("lost", "it died", { server: "a", delivery: "outcome_unknown" });
    },
    offers: registry.offers,
  });
  await expect(provider.call(call(), createCallContext(withKey("k")))).rejects.toThrow("it died");
  const again = provider.call(call(), createCallContext(withKey("k")));
  await expect(again).rejects.toMatchObject({
    code: "rpc.outcome_unknown",
    data: { delivery: "outcome_unknown", ended: false },
  });
  expect(runs).toBe(1);
});

test("a caller that hangs up does not stop a call with a key, and gets its end later", async () => {
  const gate = createDeferred<void>();
  const { registry, state } = createShop(() => gate.promise);
  const provider = withIdempotency(registry);
  const gone = new AbortController();
  const first = provider.call(call(), createCallContext({ ...withKey("k"), signal: gone.signal }));
  gone.abort(new DOMException(hungUp, "AbortError"));
  const again = provider.call(call(), createCallContext(withKey("k")));
  gate.resolve();
  expect(textOf(await again)).toBe(textOf(await first));
  expect(state.runs).toBe(1);
});

test("a caller that cancels stops a call with a key", async () => {
  const registry = createRegistry();
  let reason: unknown;
  const began = createDeferred<void>();
  registry.register("charge", { description: "Charges" }, (_, { signal }) => {
    return new Promise((_resolve, reject) => {
      began.resolve();
      signal.addEventListener("abort", () => {
        reason = signal.reason;
        reject(new Error("stopped"));
      });
    });
  });
  const provider = withIdempotency(registry);
  const stop = new AbortController();
  const made = Promise.resolve(
    provider.call(call(), createCallContext({ ...withKey("k"), signal: stop.signal })),
  );
  await began.promise;
  stop.abort(new DOMException("The caller cancelled the request", "AbortError"));
  await made.catch(() => {});
  expect(reason).toMatchObject({ message: "The caller cancelled the request" });
});

test("a caller that may no longer use a tool gets no kept end of it", async () => {
  const { registry } = createShop();
  const provider = withIdempotency(registry);
  await provider.call(call(), createCallContext(withKey("k")));
  registry.unregister("charge");
  await expect(provider.call(call(), createCallContext(withKey("k")))).rejects.toMatchObject({
    code: "provider.not_found",
  });
});

test("ends are forgotten after their time, and not before there is room", async () => {
  const { registry, state } = createShop();
  const clock = createVirtualClock();
  const calls = new KeptCalls({ keepMs: 1000, maxKeys: 8, clock });
  const provider = withIdempotency(registry, { calls });
  await provider.call(call(), createCallContext(withKey("a")));
  await provider.call(call(), createCallContext(withKey("b")));
  await expect(provider.call(call(), createCallContext(withKey("c")))).rejects.toMatchObject({
    code: "rpc.too_many",
    data: { delivery: "not_sent", retryAfterMs: 1000 },
  });
  await provider.call(call(), createCallContext(withKey("c", "another")));
  expect(state.runs).toBe(3);
  await clock.advance(1001);
  await provider.call(call(), createCallContext(withKey("a")));
  expect(state.runs).toBe(4);
  expect(calls.size).toBe(1);
});

test("ends beyond the bytes that may be kept are dropped, and their calls still not made again", async () => {
  const { registry, state } = createShop();
  const provider = withIdempotency(registry, { calls: new KeptCalls({ maxBytes: 300 }) });
  await provider.call(call(), createCallContext(withKey("a")));
  await provider.call(call(), createCallContext(withKey("b")));
  const lost = { code: "rpc.outcome_unknown", data: { ended: true } };
  await expect(provider.call(call(), createCallContext(withKey("a")))).rejects.toMatchObject(lost);
  expect(textOf(await provider.call(call(), createCallContext(withKey("b"))))).toContain("charge 2");
  expect(state.runs).toBe(2);
});

test("an error that the server answered with is the end, and is given to retries", async () => {
  let runs = 0;
  const { registry } = createShop();
  const provider = withIdempotency({
    ...registry,
    list: registry.list,
    call: () => {
      runs++;
      throw new RpcError("rpc.other", "no funds", { rpcCode: -31_000 });
    },
    offers: registry.offers,
  });
  for (const _ of [1, 2])
    await expect(provider.call(call(), createCallContext(withKey("k")))).rejects.toMatchObject({
      message: "no funds",
      rpcCode: -31_000,
    });
  expect(runs).toBe(1);
});

test("each round of questions is a step that is made once", async () => {
  const registry = createRegistry();
  let runs = 0;
  registry.register("ask", { description: "Asks" }, (_, { answers }) => {
    runs++;
    const sure = answers.elicited("sure");
    if (sure === undefined) return inputRequired({ sure: elicit("Sure?", { ok: { type: "boolean" } }) });
    return sure.action;
  });
  const provider = withIdempotency(registry);
  const capabilities = { elicitation: { form: {} } };
  const context = (): ReturnType<typeof createCallContext> =>
    createCallContext({ ...withKey("k"), capabilities });
  const asked = await provider.call(call({}, "ask"), context());
  const askedAgain = await provider.call(call({}, "ask"), context());
  expect(asked.kind).toBe("input_required");
  expect(askedAgain).toBe(asked);
  if (asked.kind !== "input_required") return;
  const [key = ""] = Object.keys(asked.asks);
  const answers = { [key]: RawJson.fromValue({ action: "accept", content: { ok: true } }) };
  const answered = { ...call({}, "ask"), round: { answers, state: asked.state } };
  const end = await provider.call(answered, context());
  const endAgain = await provider.call(answered, context());
  expect(textOf(end)).toContain("accept");
  expect(endAgain).toBe(end);
  expect(runs).toBe(2);
});
