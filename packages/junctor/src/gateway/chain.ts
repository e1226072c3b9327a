import { randomUUID } from "node:crypto";
import { stat } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { recover, type Clock, dateOf } from "@junctor/core/async";
import { ConfigError } from "@junctor/core/errors";
import type { JsonObject } from "@junctor/core/json";
import { isModernRevision } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import {
  type AuditRecord,
  bounded,
  describeEnd,
  kindOf,
  type Middleware,
  type Operation,
} from "@junctor/core/provider";
import { ExhaustedError } from "@junctor/core/schema";
import { auditLog, redact, limitTime } from "@junctor/server";
import {
  type AuditLogOptions,
  type DescribeCall,
  type OwnerOf,
  createRateLimit,
  type RateLimit,
  type RedactOptions,
  createScrubber,
} from "@junctor/server/internal";
import { type AuditFileOptions, openSharedAuditFile, type SharedAuditFile } from "../audit/index.ts";
import { createSharedRateLimit, type SharedRate, type TokenSource } from "../cluster/index.ts";
import { type GatewayConfig, toRedaction } from "../config/index.ts";
import { type GatewayLog, hideEverywhere, type HideSecrets } from "../log/index.ts";
import type { RefusedToken } from "../tokens/index.ts";

/** What a config wants done around every call; disposing it closes the audit file. */
export interface MiddlewareChain extends AsyncDisposable {
  readonly middlewares: readonly Middleware[];
  readonly rateLimit: RateLimit | undefined;
  /** The user's middlewares by the paths of their modules. */
  readonly own: ReadonlyMap<string, Middleware>;
  readonly auditFile: SharedAuditFile | undefined;
  /** Called when the chain replaces the earlier one: what both share follows this one's settings from now on. */
  takeOver(): void;
  /** Records a token that was refused, where there is an audit. */
  recordRefusal(refused: RefusedToken): void;
  /** Redacts text that servers send outside of calls and lists; undefined if it cannot be searched in time. */
  readonly redactText: (text: string | undefined) => string | undefined;
}

interface MiddlewareChainOptions {
  /** The file of the config, for messages. */
  readonly file: string;
  readonly clock: Clock;
  readonly log: GatewayLog;
  readonly ownerOf: OwnerOf;
  readonly isReadOnly: NonNullable<AuditLogOptions["isReadOnly"]>;
  readonly describe?: DescribeCall;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: HideSecrets;
  /** Gives out the tokens of limits that several replicas share. */
  readonly tokens?: TokenSource | undefined;
  /** The chain of the config before an edit. */
  readonly earlier?: MiddlewareChain;
  /** Whether modules that the earlier chain loaded are not loaded again though they changed. */
  readonly keepsModules?: boolean;
}

/**
 * Makes the middlewares of a config, outermost first: the audit sees every call, also refused ones; redaction is next to
 * the servers, so that no other middleware sees redacted text. Limits that an edit of the config does not change keep their counts from the
 * earlier chain.
 */
export async function createMiddlewareChain(
  config: GatewayConfig,
  options: MiddlewareChainOptions,
): Promise<MiddlewareChain> {
  const { file, clock, log, ownerOf, earlier, keepsModules = false } = options;
  const { limits, audit } = config;
  const kept = keepsModules ? earlier?.own : undefined;
  const load = async (path: string): Promise<readonly [string, Middleware]> => [
    path,
    kept?.get(path) ?? (await loadMiddleware(path, file)),
  ];
  const own = await Promise.all(config.middleware.map(load));
  const auditOptions = audit && toAuditFileOptions(audit, config);
  const auditFile = auditOptions && (await openAudit(auditOptions, earlier?.auditFile));
  const patterns = config.redact.map(toRedaction);
  const { tokens } = options;
  const rate =
    tokens === undefined
      ? rateLimit(limits, clock, earlier?.rateLimit)
      : sharedRateLimit(limits, clock, tokens);
  const middlewares = [
    ...(log.isLevelEnabled?.("debug") === false ? [] : [logCalls({ log, clock, ownerOf })]),
    ...(auditFile === undefined ? [] : [createAudited(auditFile, config, patterns, options)]),
    ...(rate === undefined ? [] : [rate.middleware]),
    ...timeLimit(limits),
    ...own.map(([, middleware]) => middleware),
    ...(patterns.length === 0 ? [] : [redact({ patterns })]),
  ];
  return {
    middlewares,
    rateLimit: rate,
    own: new Map(own),
    auditFile,
    takeOver: () => {
      if (auditOptions !== undefined) auditFile?.setRetention(auditOptions);
    },
    recordRefusal: (refused) => {
      const failed = (error: unknown): void =>
        log.error({ error: String(error) }, "a refused token could not be recorded");
      void recover<void>(() => auditFile?.sink(toRefusalRecord(refused, clock)), failed);
    },
    redactText: createRedactText(patterns),
    [Symbol.asyncDispose]: async () => auditFile?.[Symbol.asyncDispose](),
  };
}

function createRedactText(patterns: RedactOptions["patterns"]): MiddlewareChain["redactText"] {
  if (patterns.length === 0) return (text) => text;
  const scrub = createScrubber({ patterns });
  return (text) => {
    try {
      return text === undefined ? undefined : (JSON.parse(scrub(JSON.stringify(text))) as string);
    } catch (error) {
      if (error instanceof ExhaustedError) return undefined;
      throw error;
    }
  };
}

type Limits = GatewayConfig["limits"];

/** The record of a token that was refused. It has no caller: nothing that the token says is true. */
function toRefusalRecord({ reason, token }: RefusedToken, clock: Clock): AuditRecord {
  return {
    time: dateOf(clock.now(), clock),
    call: randomUUID(),
    trace: undefined,
    caller: undefined,
    decision: "deny",
    server: "gateway",
    kind: "event",
    tool: "token.refused",
    era: undefined,
    revision: undefined,
    argumentsDigest: "",
    outcome: "refused",
    reason,
    token,
    code: "token.refused",
    delivery: "not_sent",
    bytesSent: 0,
    bytesReceived: 0,
    durationMs: 0,
  };
}

function toAuditFileOptions(
  { file, maxBytes, keep, keepDays }: NonNullable<GatewayConfig["audit"]>,
  { keys, issuers }: GatewayConfig,
): AuditFileOptions {
  // Callers without names count as one, which may have the whole space.
  const days = keepDays ?? (keys.length === 0 && issuers.length === 0 ? 0 : undefined);
  return { path: file, ...defined({ maxBytes, keep, keepDays: days }) };
}

/** Opens the audit file, or keeps that of the earlier config: its chain of records must not have two ends. */
async function openAudit(
  options: AuditFileOptions,
  earlier: SharedAuditFile | undefined,
): Promise<SharedAuditFile> {
  return earlier?.path === options.path ? earlier.retain() : openSharedAuditFile(options);
}

/** A record names the server that has the tool or that the name points to, else the gateway. */
function createAudited(
  { sink, ready }: SharedAuditFile,
  { audit, servers, disabled }: GatewayConfig,
  patterns: RedactOptions["patterns"],
  { clock, log, ownerOf, isReadOnly, describe, hide }: MiddlewareChainOptions,
): Middleware {
  const scrub = createScrubber({ patterns });
  const onFailure = audit?.onFailure ?? "closed";
  const meanwhile = onFailure === "closed" ? "calls are refused" : "calls go on without a record";
  let isFailing = false;
  const wanted = new Map([...servers, ...disabled].map((server) => [server.name, server.audit.arguments]));
  return auditLog({
    record: sink,
    ready,
    onFailure,
    isReadOnly,
    ...(describe === undefined ? {} : { describe }),
    server: "gateway",
    clock,
    ownerOf,
    recordsArguments: (server) => wanted.get(server) ?? audit?.arguments ?? false,
    redact: (_args, _tool, text, server) => hideEverywhere(text, (json) => hide(scrub(json), server)),
    onDropped: (count) => log.error({ count }, "audit records were dropped: the file is too slow"),
    // One line for the first of many failures.
    onFailed: (error) => {
      if (!isFailing) log.error({ error: String(error) }, `audit records cannot be written: ${meanwhile}`);
      isFailing = true;
    },
    onRecovered: () => {
      isFailing = false;
      log.warn({}, "audit records are written again");
    },
  });
}

function rateLimit(
  { callsPerMinute, tools = {} }: Limits,
  clock: Clock,
  earlier: RateLimit | undefined,
): RateLimit | undefined {
  const own = Object.entries(tools).flatMap(([glob, limit]) =>
    limit.callsPerMinute === undefined ? [] : [[glob, { callsPerMinute: limit.callsPerMinute }] as const],
  );
  if (callsPerMinute === undefined && own.length === 0) return undefined;
  const rate = callsPerMinute ?? Number.MAX_SAFE_INTEGER;
  return createRateLimit({ callsPerMinute: rate, tools: Object.fromEntries(own), clock }, earlier);
}

function sharedRateLimit(
  { tools = {}, ...general }: Limits,
  clock: Clock,
  source: TokenSource,
): RateLimit | undefined {
  const all = [[undefined, general] as const, ...Object.entries(tools)];
  const rates = all.flatMap(([glob, { callsPerMinute, strict = general.strict ?? false }]) => {
    const rate: SharedRate | undefined =
      callsPerMinute === undefined ? undefined : { callsPerMinute, strict };
    return rate === undefined ? [] : [[glob, rate] as const];
  });
  return rates.length === 0 ? undefined : createSharedRateLimit({ rates, source, clock });
}

function timeLimit({ callTimeoutMs, tools = {} }: Limits): readonly Middleware[] {
  const own = Object.entries(tools).flatMap(([glob, limit]) =>
    limit.callTimeoutMs === undefined ? [] : [[glob, limit.callTimeoutMs] as const],
  );
  if (callTimeoutMs === undefined && own.length === 0) return [];
  return [limitTime({ ms: callTimeoutMs ?? longestMs, tools: Object.fromEntries(own) })];
}

/** A day: longer than any call may take. */
const longestMs = 24 * 3_600_000;

const hooks = ["filterTools", "beforeCall", "afterCall"] as const;

/**
 * Loads a user's module: its default export is a middleware or a function that makes one. A module that changed on disk is
 * loaded again. Throws a `ConfigError` that says what is wrong with it.
 */
export async function loadMiddleware(path: string, file: string): Promise<Middleware> {
  const fail = (message: string, cause?: unknown): ConfigError =>
    new ConfigError(file, [{ path: "junctor.middleware", message }], { cause });
  let made: unknown;
  try {
    const { mtimeMs } = await stat(path);
    const url = `${pathToFileURL(path).href}?changed=${mtimeMs}`;
    const { default: exported } = (await /* the user's */ import(url)) as { readonly default?: unknown };
    made = typeof exported === "function" ? await (exported as () => unknown)() : exported;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw fail(`${path} cannot be loaded: ${reason}`, error);
  }
  if (typeof made !== "object" || made === null)
    throw fail(`${path} has no middleware: write export default { beforeCall(call) { … } }`);
  const wrong = hooks.find((hook) => {
    const value = (made as JsonObject)[hook];
    return value !== undefined && typeof value !== "function";
  });
  if (wrong !== undefined) throw fail(`${path}: ${wrong} must be a function`);
  if (!hooks.some((hook) => (made as JsonObject)[hook] !== undefined))
    throw fail(`${path} has none of the hooks ${hooks.join(", ")}`);
  return made;
}

/** Logs each call when it has ended, at `debug`. It costs a little, so leave it out where that level is not written. */
export function logCalls({
  log,
  clock,
  ownerOf,
}: {
  readonly log: GatewayLog;
  readonly clock: Clock;
  readonly ownerOf: OwnerOf;
}): Middleware {
  const startedAt = new WeakMap<Operation, number>();
  return {
    beforeCall: (call) => {
      // `afterCall` gets this copy, which identifies the call.
      const own = { ...call };
      startedAt.set(own, clock.now());
      return own;
    },
    afterCall: (call, end, context) => {
      const now = clock.now();
      const tool = bounded(call.name);
      const { outcome, code, delivery } = describeEnd(end, call);
      const facts = {
        tool,
        ...(kindOf(call) === "tool" ? {} : { kind: kindOf(call) }),
        server: ownerOf(call, context)?.server,
        caller: context.caller,
        era: isModernRevision(context.revision) ? "modern" : "legacy",
        revision: context.revision,
        outcome,
        code,
        delivery,
        ms: now - (startedAt.get(call) ?? now),
      };
      log.debug(facts, `call of ${tool}: ${outcome}`);
    },
  };
}
