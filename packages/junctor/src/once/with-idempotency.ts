import { createHash } from "node:crypto";
import { fromSignal, isPromise, LazyAbort, waitFor } from "@junctor/core/async";
import { ClosedError, NotFoundError, RpcError } from "@junctor/core/errors";
import { joinMembers, type RawJson, withoutMembers } from "@junctor/core/json";
import { type HeaderLookup, metaKeys, methods } from "@junctor/core/mcp";
import {
  type CallContext,
  findIn,
  isLook,
  type Operation,
  type Outcome,
  type Provider,
  thingOf,
  withContext,
  type Wrapper,
} from "@junctor/core/provider";
import { hungUp } from "@junctor/server/internal";
import { endOfError, type KeptEnd } from "./call-end.ts";
import { KeptCalls } from "./kept-calls.ts";

/** What `withIdempotency` works with. */
export interface IdempotencyOptions {
  /** The calls that came with a key; in memory, with the limits of `KeptCalls`, when left out. */
  readonly calls?: KeptCalls;
  /** What keys belong to besides their caller, such as the path that is served. */
  readonly scope?: string | undefined;
}

/** The member of the params that SEP-3182 has for the key. */
const ofParams = "idempotencyKey";
const ofHeaders = "idempotency-key";
const maxKeyLength = 255;

/**
 * Runs a call that comes with an idempotency key once, and gives its end to every retry. Keys are their caller's own. A call with a key
 * goes on when its caller loses its connection, because the caller may come back for the end.
 *
 * @example
 * await serveStdio(createServer(withIdempotency(registry), { name: "shop", version: "1.0.0" }));
 */
export function withIdempotency(provider: Provider, options: IdempotencyOptions = {}): Provider {
  const { calls = new KeptCalls(), scope } = options;
  const wrapper: Wrapper = {
    list: (part, context) => provider.list(part, context),
    call: (operation, context) => {
      const { meta, headers } = context;
      const given = isKeyed(operation) ? keysIn(operation, meta, headers) : noKeys;
      return given.length === 0
        ? provider.call(operation, context)
        : callOnce(provider, { calls, scope, given }, operation, context);
    },
    find: provider.find?.bind(provider),
    watch: provider.watch?.bind(provider),
    offers: (caller) => provider.offers(caller),
    onChange: provider.onChange?.bind(provider),
  };
  return wrapper;
}

/** Completions, and looks at tasks, change nothing. */
function isKeyed(operation: Operation): boolean {
  return !isLook(operation) && operation.method !== "completion/complete";
}

const noKeys: readonly unknown[] = [];

/** What a call says in the three places where its key may be. */
function keysIn(
  { params }: Operation,
  meta: RawJson | undefined,
  headers?: HeaderLookup,
): readonly unknown[] {
  const isInMeta = meta?.has(metaKeys.idempotencyKey) === true;
  const isInParams = params?.has(ofParams) === true;
  const inHeaders = headers?.(ofHeaders);
  if (!isInMeta && !isInParams && inHeaders === undefined) return noKeys;
  return [
    ...(isInMeta ? [meta.at(metaKeys.idempotencyKey)?.value] : []),
    ...(isInParams ? [params.at(ofParams)?.value] : []),
    ...(inHeaders === undefined ? [] : [inHeaders]),
  ];
}

function toKey(given: readonly unknown[]): string {
  const [key] = given;
  if (given.some((other) => other !== key)) throw wrongKey("is given twice, and differs");
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key))
    throw wrongKey("must be a text of visible ASCII characters");
  if (key.length > maxKeyLength) throw wrongKey(`has ${key.length} characters; the limit is ${maxKeyLength}`);
  return key;
}

function wrongKey(what: string): RpcError {
  return new RpcError("rpc.invalid_params", `Invalid params: the idempotency key ${what}. Nothing was done`, {
    data: { code: "rpc.invalid_params", delivery: "not_sent" },
  });
}

interface Keyed extends Required<Pick<IdempotencyOptions, "calls">> {
  readonly given: readonly unknown[];
  readonly scope: string | undefined;
}

async function callOnce(
  provider: Provider,
  { calls, scope, given }: Keyed,
  operation: Operation,
  context: CallContext,
): Promise<Outcome> {
  const { caller } = context;
  const id = digest([caller === undefined ? "" : `=${caller}`, toKey(given), ...roundOf(operation)]);
  const fingerprint = fingerprintOf(operation, scope);
  const earlier = await calls.begin({ id, fingerprint, owner: caller });
  if (earlier !== undefined) {
    await assertVisible(provider, operation, context);
    return toOutcome(isPromise(earlier) ? await waitFor(earlier, context) : earlier);
  }
  try {
    const outcome = await provider.call(withoutKey(operation), withOwnEnd(context));
    await calls.end(id, { kind: "outcome", outcome });
    return outcome;
  } catch (error) {
    await calls.end(id, endOfError(error));
    throw error;
  }
}

/** What a later round brings: each is a step of its own, made once. */
function roundOf({ round }: Operation): readonly string[] {
  if (round === undefined) return [];
  return [joinMembers(round.latest ?? round.answers).text, JSON.stringify(round.state) ?? ""];
}

function fingerprintOf({ method, name, ref, arguments: args }: Operation, scope: string | undefined): string {
  return digest([scope ?? "", method, name, ref ?? "", args.bytes]);
}

/** One digest for a list of texts, each with its length before it. */
function digest(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest("base64url");
}

/** The next server knows this gateway, and not its callers: keys of different callers would collide there. */
function withoutKey(operation: Operation): Operation {
  const { params, method } = operation;
  if (params?.has(ofParams) !== true) return operation;
  const bare = withoutMembers(params, [ofParams]);
  const isWhole = methods.get(method) === undefined;
  return { ...operation, params: bare, ...(isWhole ? { arguments: bare } : {}) };
}

/** A caller that lost its connection has not given the call up. Time limits, a revoked key and a cancellation still end it. */
function withOwnEnd(context: CallContext): CallContext {
  const { cancellation = fromSignal(context.signal) } = context;
  const own = new LazyAbort();
  const stop = (): void => {
    const { reason } = cancellation;
    if (!(reason instanceof ClosedError) && !isHangUp(reason)) own.abort(reason);
  };
  if (cancellation.isAborted) stop();
  else cancellation.onAbort(stop);
  return withContext(context, { cancellation: own });
}

function isHangUp(reason: unknown): boolean {
  return reason instanceof DOMException && reason.message === hungUp;
}

/** A caller gets no kept end of what it may no longer use. */
async function assertVisible(provider: Provider, operation: Operation, context: CallContext): Promise<void> {
  const { part, name } = operation;
  if (part !== "tools" && part !== "prompts") return;
  if ((await findIn(provider, part, name, context)) === undefined)
    throw new NotFoundError(thingOf(operation), name);
}

function toOutcome(end: KeptEnd): Outcome {
  if (end.kind === "outcome") return end.outcome;
  if (end.kind === "error") throw end.error;
  const text =
    end.kind === "unknown"
      ? "The call with this idempotency key was begun, and what became of it is not known. It is not made again"
      : "The call with this idempotency key ended, and its end is no longer kept. It is not made again";
  throw new RpcError("rpc.outcome_unknown", text, {
    data: { code: "rpc.outcome_unknown", delivery: "outcome_unknown", ended: end.kind === "dropped" },
  });
}
