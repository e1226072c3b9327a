import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NotFoundError, RpcError, ToolError, UpstreamError } from "../packages/core/src/errors/index.ts";
import { legacyRevisions, type Revision } from "../packages/core/src/mcp/revision.ts";
import type { Server } from "../packages/core/src/mcp/server.ts";
import { emptyListing } from "../packages/core/src/provider/listing.ts";
import type { Provider } from "../packages/core/src/provider/provider.ts";
import { type FetchHandler, toFetchHandler } from "../packages/server/src/http/fetch.ts";
import { createRegistry } from "../packages/server/src/registry/registry.ts";
import { createServer } from "../packages/server/src/wire/server.ts";
import { talkLegacy, talkModern } from "./support/conversation.ts";
import { both, initializeOf, json, mirrored, modern, toPairs } from "./support/http-wire.ts";
import { assertValidFrame, type Frame } from "./support/wire-schema.ts";

const explode = (): never => {
  throw new Error("a trap of the thrown value");
};

/** An object that throws whatever is done with it. */
const hostile = new Proxy(new Error("hostile"), {
  get: explode,
  getPrototypeOf: explode,
  has: explode,
  ownKeys: explode,
  getOwnPropertyDescriptor: explode,
});

const plain = fc.anything({
  withBigInt: true,
  withDate: true,
  withNullPrototype: true,
  withSparseArray: true,
});
const odd = fc.oneof(plain, fc.constantFrom<unknown>(NaN, Infinity, 1.5, 2 ** 60, Symbol("s"), explode));
const code = fc.oneof(
  odd,
  fc.constantFrom("rpc.quota_exceeded", "rpc.internal", "tool.failed", "provider.not_found", "ECONNRESET"),
);

/** A third party's error: the names of its members are ours, their values are not. */
const foreignError = fc
  .record(
    { code, message: odd, rpcCode: odd, data: odd, what: odd, id: odd, name: odd, stack: odd },
    { requiredKeys: [] },
  )
  .map((members) => Object.assign(new Error("foreign"), members));

/** An error of a class of ours, from JavaScript that no compiler checked. */
const ownError = fc.oneof(
  fc
    .tuple(odd, odd, odd)
    .map(([message, rpcCode, data]) =>
      Object.assign(new RpcError("rpc.other", "ours", { rpcCode: rpcCode as number, data }), { message }),
    ),
  odd.map((message) => Object.assign(new ToolError("ours"), { message })),
  odd.map((what) => Object.assign(new NotFoundError("tool", "x"), { what })),
  odd.map((message) =>
    Object.assign(new UpstreamError("lost", "", { server: "x", delivery: "outcome_unknown" }), { message }),
  ),
);

const getters = fc
  .constantFrom("message", "code", "rpcCode", "data", "name", "stack")
  .map((key) => Object.defineProperty(new RpcError("rpc.internal", "x"), key, { get: explode }));

/** A function that makes the value: fast-check could not hold the hostile one itself. */
const thrown = fc.oneof(
  fc.oneof(odd, foreignError, ownError, getters).map((value) => () => value),
  fc.constant(() => hostile),
);

/** A provider and a registry whose handlers throw what `current` is. */
function createThrower(): { readonly server: Server; readonly raw: Server; current: unknown } {
  const registry = createRegistry({ onError: () => {} });
  const fail = (): never => {
    throw thrower.current;
  };
  registry.register("fail", {}, fail);
  const provider: Provider = {
    list: () => emptyListing,
    call: fail,
    offers: () => ({ serves: () => true }),
  };
  const onError = (error: unknown): void => void String(error);
  const info = { name: "thrower", version: "1.0.0" };
  const thrower = {
    current: undefined as unknown,
    server: createServer(registry, info, { onError }),
    raw: createServer(provider, info, { onError }),
  };
  return thrower;
}

const requests: readonly (readonly [string, { readonly [member: string]: unknown }])[] = [
  ["tools/call", { name: "fail", arguments: {} }],
  ["prompts/get", { name: "fail" }],
  ["resources/read", { uri: "fail:1" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "fail" }, argument: { name: "a", value: "" } }],
];

async function post(
  handler: FetchHandler,
  message: Frame,
  headers: { readonly [name: string]: string | undefined },
): Promise<Response> {
  const all = { "content-type": json, accept: both, ...headers };
  return handler(
    new Request("http://localhost:8787/mcp", {
      method: "POST",
      headers: [...toPairs(all)] as [string, string][],
      body: JSON.stringify(message),
    }),
  );
}

/** Reads the frames of a reply, be it JSON or a stream. */
async function framesOf(response: Response): Promise<readonly unknown[]> {
  const text = await response.text();
  if (response.headers.get("content-type") === json) return [JSON.parse(text) as unknown];
  return text
    .split("\n")
    .filter((line) => /^data: ./.test(line))
    .map((line) => JSON.parse(line.slice(6)) as unknown);
}

describe("whatever a handler throws, the answer is a frame that parses and fits its schema", () => {
  const revisions: readonly Revision[] = ["2026-07-28", ...legacyRevisions];

  test.each(revisions)("on a channel, %s", async (revision) => {
    const thrower = createThrower();
    for (const server of [thrower.server, thrower.raw]) {
      const talk = revision === "2026-07-28" ? talkModern(server) : await talkLegacy(server, revision);
      await fc.assert(
        fc.asyncProperty(thrown, fc.constantFrom(...requests), async (make, [method, params]) => {
          thrower.current = make();
          const { result, error } = await talk.request(method, params);
          expect(result === undefined).toBe(error !== undefined);
        }),
        { numRuns: 100 },
      );
      // Holds every frame to its schema.
      await talk[Symbol.asyncDispose]();
    }
  });

  test.each(revisions)("over HTTP, %s", async (revision) => {
    const thrower = createThrower();
    for (const server of [thrower.server, thrower.raw]) {
      const handler = toFetchHandler(server, { onWarning: () => {} });
      const opened = revision === "2026-07-28" ? undefined : await post(handler, initializeOf(revision), {});
      const session = opened?.headers.get("mcp-session-id") ?? undefined;
      await fc.assert(
        fc.asyncProperty(thrown, fc.constantFrom(...requests), async (make, [method, params]) => {
          thrower.current = make();
          const message =
            session === undefined ? modern(method, params) : { jsonrpc: "2.0", id: 1, method, params };
          const own = session === undefined ? mirrored(message) : { "mcp-session-id": session };
          const frames = await framesOf(await post(handler, message, own));
          expect(frames).toHaveLength(1);
          for (const frame of frames) assertValidFrame("server", revision, message, frame);
        }),
        { numRuns: 100 },
      );
    }
  });
});
