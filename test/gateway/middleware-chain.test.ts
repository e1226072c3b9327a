import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../packages/core/src/async/clock.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { withMiddleware } from "../../packages/core/src/provider/middleware.ts";
import { createOperation } from "../../packages/core/src/provider/operation.ts";
import type { Operation } from "../../packages/core/src/provider/provider.ts";
import type { GatewayConfig } from "../../packages/junctor/src/config/config.ts";
import { createMiddlewareChain, type MiddlewareChain } from "../../packages/junctor/src/gateway/chain.ts";
import { silentLog } from "../../packages/junctor/src/log/log.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { readAuditCalls } from "../support/audit-lines.ts";
import { toProvider } from "../support/use-provider.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-chain-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const toConfig = (config: Partial<GatewayConfig>): GatewayConfig =>
  ({
    middleware: [],
    audit: undefined,
    limits: {},
    redact: [],
    servers: [],
    keys: [],
    issuers: [],
    disabled: [],
    ...config,
  }) as unknown as GatewayConfig;

const make = (
  config: Partial<GatewayConfig>,
  clock = systemClock,
  earlier?: MiddlewareChain,
): Promise<MiddlewareChain> =>
  createMiddlewareChain(toConfig(config), {
    file: "mcp.json",
    clock,
    log: silentLog,
    ownerOf: () => undefined,
    isReadOnly: () => true,
    hide: (json) => json,
    ...(earlier === undefined ? {} : { earlier }),
  });

const call = createOperation("tools/call", "echo", { arguments: { text: "sk-abc" } });

/** What a call says in the end, through a chain and a provider that answers with its arguments. */
async function say({ middlewares }: MiddlewareChain, more: Partial<Operation> = {}): Promise<string> {
  const provider = toProvider([{ name: "echo", inputSchema: { type: "object" } }], ({ arguments: args }) => ({
    kind: "complete",
    result: RawJson.fromValue({ content: [{ type: "text", text: args.text }] }),
  }));
  try {
    const guarded = withMiddleware(provider, middlewares);
    const outcome = await guarded.call({ ...call, ...more }, createCallContext());
    return outcome.kind === "complete" ? outcome.result.text : outcome.kind;
  } catch (error) {
    return (error as Error).message;
  }
}

test("a config that wants nothing done has no middleware", async () => {
  await using chain = await make({});
  expect(chain.middlewares).toEqual([]);
});

test("limits count calls, of all tools and of single ones", async () => {
  const clock = createVirtualClock(1_000_000);
  await using all = await make({ limits: { callsPerMinute: 1 } }, clock);
  expect(await say(all)).toContain("sk-abc");
  expect(await say(all)).not.toContain("sk-abc");
  await using one = await make({ limits: { tools: { "ech?": { callsPerMinute: 1 } } } }, clock);
  expect(await say(one)).toContain("sk-abc");
  expect(await say(one)).not.toContain("sk-abc");
});

test("an edit keeps what callers have used up, also of the limits that it changes", async () => {
  const clock = createVirtualClock(1_000_000);
  const tools = { "ech?": { callsPerMinute: 2 } };
  await using first = await make({ limits: { callsPerMinute: 3, tools } }, clock);
  expect(await say(first)).toContain("sk-abc");
  await using redacting = await make({ limits: { callsPerMinute: 3, tools }, redact: ["/x/"] }, clock, first);
  expect(await say(redacting)).toContain("sk-abc");
  expect(await say(redacting)).toContain("2 calls a minute of ech?");
  const more = { "ech?": { callsPerMinute: 5 } };
  await using wider = await make({ limits: { callsPerMinute: 3, tools: more } }, clock, redacting);
  expect(await say(wider)).toContain("5 calls a minute of ech?");
  await clock.advance(20_000);
  await using same = await make({ limits: { callsPerMinute: 3, tools: more } }, clock, wider);
  expect(await say(same)).toContain("sk-abc");
  expect(await say(same)).toContain("5 calls a minute of ech?");
  await using other = await make({ limits: { callsPerMinute: 4 } }, clock, same);
  expect(await say(other)).toContain("sk-abc");
});

test("limits of time are set on calls, of all tools and of single ones", async () => {
  const timeoutOf = async (limits: GatewayConfig["limits"], name: string): Promise<number | undefined> => {
    await using chain = await make({ limits });
    const before = chain.middlewares[0]?.beforeCall;
    const changed = await before?.(createOperation("tools/call", name), createCallContext());
    return changed === undefined ? undefined : changed.timeoutMs;
  };
  expect(await timeoutOf({ callTimeoutMs: 500 }, "echo")).toBe(500);
  expect(await timeoutOf({ callTimeoutMs: 500, tools: { slow: { callTimeoutMs: 9000 } } }, "slow")).toBe(
    9000,
  );
  expect(await timeoutOf({ tools: { slow: { callTimeoutMs: 9000 } } }, "slow")).toBe(9000);
});

test("what is redacted is seen neither by the user's own middleware nor by the caller, and what is refused is audited", async () => {
  const own = join(folder, "own.mjs");
  await writeFile(
    own,
    `export const seen = [];
     export default {
       beforeCall(call) { if (call.arguments.value.text === "no") throw new Error("refused"); },
       afterCall(call, end) { globalThis.junctorSeen = end.result?.text; },
     };`,
  );
  const file = join(folder, "audit.jsonl");
  {
    await using chain = await make({ middleware: [own], audit: { file }, redact: ["/sk-[a-z]+/"] });
    expect(chain.middlewares).toHaveLength(3);
    expect(await say(chain)).not.toContain("sk-abc");
    expect((globalThis as { junctorSeen?: string }).junctorSeen).not.toContain("sk-abc");
    expect(await say(chain, { arguments: RawJson.fromText('{"text":"no"}') })).toBe("refused");
  }
  // Disposing has written what was still to be written.
  expect(await readAuditCalls(file)).toMatchObject([{ outcome: "ok" }, { outcome: "refused" }]);
  expect(await readFile(file, "utf8")).not.toContain("sk-abc");
});

test("a module that is wrong leaves no audit file open, or made", async () => {
  const file = join(folder, "never.jsonl");
  await expect(make({ middleware: [join(folder, "absent.mjs")], audit: { file } })).rejects.toThrow(
    "cannot be loaded",
  );
  await expect(readFile(file)).rejects.toThrow("ENOENT");
});

test("disposing twice does no harm", async () => {
  const chain = await make({ audit: { file: join(folder, "twice.jsonl") } });
  await chain[Symbol.asyncDispose]();
  await expect(chain[Symbol.asyncDispose]()).resolves.toBeUndefined();
});
