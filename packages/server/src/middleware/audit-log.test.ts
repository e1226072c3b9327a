import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { callTool } from "../../../../test/support/use-provider.ts";
import { RpcError, ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import type { AuditRecord } from "../../../core/src/provider/audit.ts";
import { inputRequired, failure } from "../../../core/src/provider/content.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { type Middleware, withMiddleware } from "../../../core/src/provider/middleware.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Provider } from "../../../core/src/provider/provider.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createRegistry } from "../registry/registry.ts";
import { allowTools } from "./allow-list.ts";
import { auditLog, type AuditLogOptions } from "./audit-log.ts";
import { limitRate, limitTime } from "./limits.ts";
import { redact } from "./redact.ts";

const startMs = Date.parse("2026-01-02T03:04:05Z");

function audited(options: Partial<AuditLogOptions> = {}, inner: readonly Middleware[] = []) {
  const clock = createVirtualClock(startMs);
  const records: AuditRecord[] = [];
  const record = (taken: AuditRecord): void => void records.push(taken);
  const registry = createRegistry({ onError: () => {} });
  registry.register("echo", { input: { type: "object" } }, (args) => JSON.stringify(args));
  registry.register("fail", {}, () => failure("no"));
  registry.register("ask", {}, (_, { answers }) =>
    answers.elicited("sure") === undefined ? inputRequired({ sure: elicit("Sure?", {}) }, 1) : "done",
  );
  registry.register("refuse", {}, () => {
    throw new RpcError("rpc.invalid_params", "no");
  });
  registry.register("throw", {}, () => {
    throw new RpcError("rpc.other", "odd", { rpcCode: 7 });
  });
  registry.register(
    "strict",
    { input: { type: "object", properties: { count: { type: "integer" } }, required: ["count"] } },
    () => "fine",
  );
  registry.register("hang", {}, () => new Promise<string>(() => {}));
  const provider = withMiddleware(registry, [auditLog({ record, clock, ...options }), ...inner], { clock });
  return { clock, records, provider };
}

async function call(provider: Provider, name: string, args = "{}"): Promise<unknown> {
  return callTool(provider, name, RawJson.fromText(args));
}

describe("auditLog", () => {
  test("writes everything about a call", async () => {
    const { provider, records } = audited({ server: "demo" });
    const meta = RawJson.fromValue({ traceparent: "00-4bf9-00f0-01" });
    const args = RawJson.fromText('{"key":"ü"}');
    await callTool(provider, "echo", args, createCallContext({ caller: "ada", meta }));
    expect(records).toEqual([
      {
        time: "2026-01-02T03:04:05.000Z",
        call: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
        trace: "00-4bf9-00f0-01",
        caller: "ada",
        server: "demo",
        tool: "echo",
        era: "modern",
        revision: "2026-07-28",
        argumentsDigest: createHash("sha256").update('{"key":"ü"}').digest("hex"),
        outcome: "ok",
        delivery: undefined,
        bytesSent: 12,
        bytesReceived: expect.any(Number) as unknown,
        durationMs: 0,
      },
    ]);
    expect(records[0]?.bytesReceived).toBeGreaterThan(20);
  });

  const refused = { outcome: "refused", delivery: "not_sent", bytesSent: 0 } as const;
  const refusingLater: Middleware = {
    beforeCall: () => Promise.reject(new RpcError("rpc.missing_capability", "no")),
  };
  const refusing: Middleware = {
    beforeCall: () => {
      throw new ToolError("not today");
    },
  };
  test.each<[string, readonly Middleware[], Partial<AuditRecord>]>([
    ["fail", [], { outcome: "tool_error", delivery: undefined }],
    ["ask", [], { outcome: "input_required", delivery: undefined }],
    ["refuse", [], { outcome: "rpc.invalid_params", delivery: "answered" }],
    ["throw", [], { outcome: "rpc.other", code: "rpc.other", delivery: "answered" }],
    // Those that were not called.
    ["nothing", [], { ...refused, code: "provider.not_found" }],
    ["echo", [refusing], { ...refused, code: "tool.refused" }],
    ["echo", [{}, refusingLater], { ...refused, code: "rpc.missing_capability" }],
    ["echo", [allowTools({ deny: ["echo"] })], { ...refused, code: "provider.not_found" }],
    ["strict", [], { ...refused, code: "tool.invalid_arguments" }],
    [
      "strict",
      [redact({ patterns: [/n/], maxSearchMs: 60_000 })],
      { ...refused, code: "tool.invalid_arguments" },
    ],
  ])("writes one record of a call of %s", async (name, inner, expected) => {
    const { provider, records } = audited({}, inner);
    await call(provider, name).catch(() => {});
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({ tool: name, ...expected });
  });

  test("writes that a call too many was refused", async () => {
    const { provider, records } = audited({}, [limitRate({ callsPerMinute: 1 })]);
    await call(provider, "echo");
    await call(provider, "echo").catch(() => {});
    expect(records).toMatchObject([{ outcome: "ok" }, { ...refused, code: "tool.rate_limited" }]);
  });

  test("names the server of a tool, and what the server calls it", async () => {
    const owners = new Map([["echo", { server: "one", ownName: "say" }]]);
    const { provider, records } = audited({ server: "all", ownerOf: ({ name }) => owners.get(name) });
    await call(provider, "echo");
    await call(provider, "nothing").catch(() => {});
    expect(records).toMatchObject([
      { server: "one", tool: "echo", ownName: "say" },
      { server: "all", tool: "nothing", ownName: undefined },
    ]);
  });

  test("writes no more of a made-up name than a name may have", async () => {
    const { provider, records } = audited();
    await call(provider, "x".repeat(100_000)).catch(() => {});
    expect(records[0]?.tool).toHaveLength(256);
  });

  test("writes no half of a character, and no more of a trace than of a name", async () => {
    const { provider, records } = audited();
    const meta = RawJson.fromValue({ traceparent: "0".repeat(100_000) });
    const outcome = callTool(provider, `${"x".repeat(255)}😀`, {}, createCallContext({ meta }));
    await Promise.resolve(outcome).catch(() => {});
    expect(records).toMatchObject([{ tool: "x".repeat(255), trace: "0".repeat(256) }]);
  });

  test("writes the arguments for the servers it is told, and none that are too large", async () => {
    const { provider, records } = audited({
      redact: (args) => args,
      maxArgumentBytes: 20,
      ownerOf: ({ name }) => ({ server: name, ownName: name }),
      recordsArguments: (server) => server === "echo",
    });
    await call(provider, "echo", '{"key":"a"}');
    await call(provider, "strict", '{"count":1}');
    await call(provider, "echo", '{"key":"0123456789012"}');
    expect(records.map((record) => record.arguments)).toEqual([
      { key: "a" },
      undefined,
      "[23 bytes, not recorded]",
    ]);
  });

  test("writes that a call ran out of time, whatever the model is told", async () => {
    const { provider, records, clock } = audited({}, [limitTime({ ms: 100 })]);
    const ended = call(provider, "hang").catch((error: unknown) => error);
    await clock.advance(100);
    expect(await ended).toBeInstanceOf(ToolError);
    expect(records).toMatchObject([
      { outcome: "client.timeout", delivery: "outcome_unknown", durationMs: 100 },
    ]);
  });

  test("writes a record of each round of a call that asks", async () => {
    const { provider, records } = audited();
    await call(provider, "ask");
    const answers = { sure: RawJson.fromValue({ action: "accept", content: {} }) };
    const round = { answers, state: 1 };
    await provider.call(createOperation("tools/call", "ask", { round }), createCallContext());
    expect(records.map(({ outcome }) => outcome)).toEqual(["input_required", "ok"]);
    expect(new Set(records.map((record) => record.call)).size).toBe(2);
  });

  test("keeps calls apart that are the very same object", async () => {
    const { provider, records, clock } = audited({}, [limitTime({ ms: 100 })]);
    const same = createOperation("tools/call", "hang");
    const context = createCallContext();
    const ended = [Promise.resolve(provider.call(same, context)).catch(() => {})];
    await clock.advance(30);
    ended.push(Promise.resolve(provider.call(same, context)).catch(() => {}));
    await clock.advance(100);
    await Promise.all(ended);
    expect(records.map(({ durationMs }) => durationMs)).toEqual([100, 100]);
  });

  test("writes the arguments when they can be redacted, and else their digest only", async () => {
    const redact = (args: unknown): unknown => ({ ...(args as object), key: "***" });
    const { provider, records } = audited({ redact });
    await call(provider, "echo", '{"key":"secret"}');
    expect(records).toMatchObject([{ arguments: { key: "***" } }]);
    const plain = audited();
    await call(plain.provider, "echo", '{"key":"secret"}');
    expect(JSON.stringify(plain.records)).not.toContain("secret");
  });

  test("answers at once when its sink does", () => {
    const { provider, records } = audited();
    const outcome = callTool(provider, "echo", {}, createCallContext());
    expect(outcome).toMatchObject({ kind: "complete" });
    expect(records).toHaveLength(1);
  });

  test("holds a call up for as long as its bound when the sink stalls, and no longer", async () => {
    const { provider, clock } = audited({ record: () => new Promise(() => {}), maxWaitMs: 20 });
    let isDone = false;
    const outcome = call(provider, "echo").then(() => (isDone = true));
    await clock.advance(19);
    expect(isDone).toBe(false);
    await clock.advance(1);
    await outcome;
    expect(clock.sleeping).toBe(0);
  });

  test.each<[string, () => void | Promise<void>]>([
    ["rejects", () => Promise.reject(new Error("full"))],
    [
      "throws",
      () => {
        throw new Error("full");
      },
    ],
  ])("fails no call when its sink %s, nor when whoever hears of that throws", async (_, record) => {
    const onFailed = (): never => {
      throw new Error("clumsy");
    };
    const { provider } = audited({ record, onFailed });
    expect(await call(provider, "echo")).toMatchObject({ kind: "complete" });
  });

  test("drops and counts what a sink that stalls cannot hold, and fails no call for it", async () => {
    const counts: number[] = [];
    const onDropped = (count: number): never => {
      counts.push(count);
      throw new Error("clumsy");
    };
    const { provider, clock } = audited({ record: () => new Promise(() => {}), maxWaiting: 1, onDropped });
    const first = call(provider, "echo");
    expect(await call(provider, "echo")).toMatchObject({ kind: "complete" });
    await clock.advance(50);
    await first;
    expect(counts).toEqual([1]);
  });
});
