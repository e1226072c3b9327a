import { randomBytes } from "node:crypto";
import { fromSignal, type Clock, waitFor, LazyAbort, systemClock, setNewest } from "@junctor/core/async";
import { ClosedError, ConnectError, RpcError, HttpError, rpcCodes } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Link,
  metaKeys,
  isLegacyRevision,
  isModernRevision,
  type ModernRevision,
  newestModernRevision,
  type Revision,
  isImplementation,
  type ClientCapabilities,
  type Implementation,
  type ServerCapabilities,
  newestLegacyRevision,
} from "@junctor/core/mcp";
import { type Agreement, createModernEnvelope } from "./conversation.ts";

interface NegotiateOptions {
  readonly clientInfo: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly eras: EraCache;
  /** Names the endpoint and the credential in the cache of eras; without it nothing is remembered. */
  readonly cacheKey: string | undefined;
  /** The only revision to speak. */
  readonly revision?: Revision | undefined;
  /** The era that is tried first; modern when left out. */
  readonly era?: "modern" | "legacy" | undefined;
  /** How long a server on a pipe may be silent before it is taken for a legacy one. */
  readonly probeTimeoutMs: number;
  /** How long each step may take; for a server that is being started, how long it may go without a sign of progress. */
  readonly timeoutMs: number;
  /** How long a server that is being started may take in all. */
  readonly maxTotalMs: number;
  readonly clock: Clock;
  /** Aborting it stops the negotiation. */
  readonly signal: AbortSignal;
}

/** A link on which the era is settled. */
interface Negotiated {
  readonly link: Link;
  readonly agreement: Agreement;
}

export type OpenLink = () => Promise<Link>;

/** What a probe found. A legacy verdict may rest on silence, which a slow modern server keeps too. */
type Probed =
  | { readonly kind: "modern"; readonly agreement: Agreement }
  | { readonly kind: "legacy"; readonly isGuess: boolean };

/**
 * Finds out which era and revision a server speaks, and agrees on it. Modern is tried first; any answer but a modern one,
 * and on a pipe also silence or the end of the server, means legacy. Authorization, server faults and a broken network
 * mean neither, and are thrown.
 */
export async function negotiate(
  open: OpenLink,
  isHttp: boolean,
  options: NegotiateOptions,
): Promise<Negotiated> {
  const { cacheKey, eras, revision, signal } = options;
  const remembered = cacheKey === undefined ? undefined : eras.get(cacheKey);
  let link: Link | undefined;
  /** A server that does not survive is started again once, and only if a probe may have killed it. */
  let mayReopen = false;

  const settle = async (first: Link): Promise<Agreement> => {
    if (isLegacyRevision(revision)) return initialize(first, options);
    const { era = remembered } = options;
    if (revision === undefined && era === "legacy") return initializeOrDiscover(first, true);
    const probed = await probe(first);
    if (probed.kind === "modern") return probed.agreement;
    if (revision !== undefined)
      throw new ConnectError(first.target, `it does not speak ${revision}, which was asked for`);
    return initializeOrDiscover(first, probed.isGuess);
  };
  const reopen = async (gone: Link): Promise<Link> => {
    mayReopen = false;
    link = undefined;
    await gone[Symbol.asyncDispose]();
    return (link = await open());
  };
  /**
   * The legacy handshake. Where the verdict was a guess and the server refuses, it may be a modern one after all; where
   * the server did not survive the probe, it is started again.
   */
  const initializeOrDiscover = async (probed: Link, isGuess: boolean): Promise<Agreement> => {
    const current = mayReopen && (await isGone(probed)) ? await reopen(probed) : probed;
    try {
      return await initialize(current, options);
    } catch (error) {
      // A server that ended because we gave it up is not started again.
      signal.throwIfAborted();
      if (mayReopen && error instanceof ClosedError) return initialize(await reopen(current), options);
      const other = otherRevision(error, newestModernRevision);
      const isRefusal = error instanceof RpcError && !isNoVerdict(error, isHttp);
      if (other === "disjoint" || other === "legacy" || (other === undefined && !(isGuess && isRefusal)))
        throw error;
      const modern = other ?? newestModernRevision;
      const found = await discover(current, modern, options.timeoutMs, options).catch(() => undefined);
      if (found?.kind === "modern") return found.agreement;
      throw error;
    }
  };
  const probe = async (first: Link): Promise<Probed> => {
    const tried = isModernRevision(revision) ? revision : newestModernRevision;
    const limitMs = isHttp ? options.timeoutMs : options.probeTimeoutMs;
    mayReopen = !isHttp;
    try {
      return await discover(first, tried, limitMs, options);
    } catch (error) {
      signal.throwIfAborted();
      const other = otherRevision(error, tried);
      if (other === "disjoint") throw error;
      if (other !== undefined && other !== "legacy") return discover(first, other, limitMs, options);
      if (isModernRevision(revision)) throw error;
      if (other === undefined && isNoVerdict(error, isHttp)) throw error;
      return { kind: "legacy", isGuess: error instanceof ConnectError };
    }
  };

  try {
    link = await open();
    const agreement = await settle(link);
    // A server that was asked for one era may know both.
    if (cacheKey !== undefined && options.era === undefined) eras.set(cacheKey, agreement.mode.kind);
    return { link, agreement };
  } catch (error) {
    if (cacheKey !== undefined) eras.delete(cacheKey);
    // A caller that gave up knows why; for any other failure the link may know more.
    const explained = signal.aborted ? error : ((await link?.explain?.(error)) ?? error);
    await link?.[Symbol.asyncDispose]();
    throw explained;
  }
}

/** Asks a server whether it speaks a modern revision. Rejects with a `ConnectError` after `limitMs`. */
async function discover(
  link: Link,
  revision: ModernRevision,
  limitMs: number,
  { clientInfo, capabilities, clock, signal }: NegotiateOptions,
): Promise<Probed> {
  const controller = new AbortController();
  link.use({ kind: "modern", revision });
  const stop = clock.timer(limitMs, () =>
    controller.abort(noAnswer(link.target, `no answer within ${limitMs} ms`)),
  );
  try {
    const result = await link.request({
      method: "server/discover",
      params: createModernEnvelope(revision, clientInfo, capabilities)(undefined, {}),
      stop: fromSignal(AbortSignal.any([controller.signal, signal])),
      id: `probe-${randomBytes(6).toString("hex")}`,
    });
    return toProbed(result, revision);
  } finally {
    stop();
  }
}

/** Some legacy servers exit on anything before `initialize`; one turn of the event loop shows it. */
function isGone(link: Link): Promise<boolean> {
  const later = new Promise<boolean>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([link.closed.then(() => true), later]);
}

function toProbed(result: RawJson, revision: ModernRevision): Probed {
  const legacy = { kind: "legacy", isGuess: false } as const;
  if (result.kind !== "object") return legacy;
  const value = result.value as { readonly [key: string]: unknown };
  const versions = value["supportedVersions"];
  const capabilities = value["capabilities"];
  if (!Array.isArray(versions) || typeof capabilities !== "object" || capabilities === null) return legacy;
  if (!versions.includes(revision)) {
    if (versions.some(isLegacyRevision)) return legacy;
    throw new RpcError(
      "rpc.unsupported_version",
      `The server speaks ${versions.join(", ")} and this client does not`,
      { data: { supported: versions } },
    );
  }
  const meta = (value["_meta"] ?? {}) as { readonly [key: string]: unknown };
  const info = meta[metaKeys.serverInfo] ?? value["serverInfo"];
  const { instructions } = value;
  return {
    kind: "modern",
    agreement: {
      mode: { kind: "modern", revision },
      serverInfo: isImplementation(info) ? info : undefined,
      capabilities: capabilities as ServerCapabilities,
      instructions: typeof instructions === "string" ? instructions : undefined,
    },
  };
}

interface InitializeOptions {
  readonly clientInfo: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly revision?: Revision | undefined;
  /** How long the server may go without a sign of progress. */
  readonly timeoutMs: number;
  /** How long the handshake may take in all. */
  readonly maxTotalMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The handshake of the legacy revisions. A link on which it failed can only be disposed. */
async function initialize(link: Link, options: InitializeOptions): Promise<Agreement> {
  const { capabilities, clientInfo } = options;
  const asked = isLegacyRevision(options.revision) ? options.revision : newestLegacyRevision;
  options.signal.throwIfAborted();
  link.use({ kind: "legacy", revision: undefined });
  const tooLate = new AbortController();
  const stop = watchStart(link, options, (reason) => tooLate.abort(reason));
  const signal = AbortSignal.any([options.signal, tooLate.signal]);
  try {
    const params = RawJson.fromValue({ protocolVersion: asked, capabilities, clientInfo });
    // The request is never aborted: `initialize` is not cancelled, its link is closed.
    const request = { method: "initialize", params, stop: new LazyAbort() };
    const agreement = toAgreement(await waitFor(link.request(request), { signal }), link, options);
    link.use(agreement.mode);
    await waitFor(link.notify("notifications/initialized", undefined), { signal });
    return agreement;
  } finally {
    stop();
  }
}

/** The error when the time for an answer is over. */
function noAnswer(target: string, reason: string): ConnectError {
  return new ConnectError(target, reason, { kind: "no_answer" });
}

function toAgreement(result: RawJson, { target }: Link, { revision }: InitializeOptions): Agreement {
  const value = (result.kind === "object" ? result.value : {}) as { readonly [key: string]: unknown };
  const { protocolVersion, capabilities, serverInfo, instructions } = value;
  if (!isLegacyRevision(protocolVersion))
    throw new ConnectError(
      target,
      `it speaks the protocol revision ${String(protocolVersion)}, which this client does not`,
    );
  if (revision !== undefined && protocolVersion !== revision)
    throw new ConnectError(
      target,
      `it answered with revision ${protocolVersion}, and ${revision} was asked for`,
    );
  return {
    mode: { kind: "legacy", revision: protocolVersion },
    serverInfo: isImplementation(serverInfo) ? serverInfo : undefined,
    capabilities: (typeof capabilities === "object" && capabilities !== null
      ? capabilities
      : {}) as ServerCapabilities,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}

interface StartPatienceOptions {
  readonly clock: Clock;
  /** How long the server may go without a sign of progress. */
  readonly timeoutMs: number;
  /** How long the step may take in all, however busy the server is. */
  readonly maxTotalMs: number;
}

/** An idle program uses less than this within the time-out. */
const minProcessorMs = 100;

/**
 * Calls `giveUp` when a server that is being started has not answered in time. A server that writes to its standard error
 * stream or uses the processor is at work, often installing itself, and gets more time. Call the returned function when the
 * answer has come.
 */
export function watchStart(
  link: Pick<Link, "target" | "progress">,
  { clock, timeoutMs, maxTotalMs }: StartPatienceOptions,
  giveUp: (reason: ConnectError) => void,
): () => void {
  let leftMs = maxTotalMs;
  let seen = link.progress?.();
  let stop: () => void;
  const wait = (): void => {
    const ms = Math.min(timeoutMs, leftMs);
    leftMs -= ms;
    stop = clock.timer(ms, () => {
      const now = link.progress?.();
      const isAtWork =
        seen !== undefined &&
        now !== undefined &&
        (now.stderrBytes > seen.stderrBytes ||
          Math.abs(now.processorMs - seen.processorMs) >= minProcessorMs);
      seen = now;
      if (isAtWork && leftMs > 0) return wait();
      const text = isAtWork
        ? `no answer to initialize within ${maxTotalMs} ms, although it was at work`
        : `no answer to initialize within ${timeoutMs} ms`;
      giveUp(noAnswer(link.target, text));
    });
  };
  wait();
  return () => stop();
}

/** What a server that refused our revision offers instead: one that we know too, a legacy one, or nothing. */
function otherRevision(
  error: unknown,
  tried: ModernRevision,
): ModernRevision | "legacy" | "disjoint" | undefined {
  if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.unsupported_version"]) return undefined;
  const supported = (error.data as { supported?: unknown } | undefined)?.supported;
  if (!Array.isArray(supported) || supported.length === 0) return undefined;
  const mutual = supported.find((candidate): candidate is ModernRevision => isModernRevision(candidate));
  // Refused although it is in the list: try once more, as the list says; a second refusal is an error.
  if (mutual !== undefined) return mutual === tried ? tried : mutual;
  return supported.some(isLegacyRevision) ? "legacy" : "disjoint";
}

/**
 * Whether a failed probe says nothing about the era. On a pipe any failure but our own abort says *legacy*. On HTTP,
 * authorization, server faults and the network say nothing, and some errors say *modern* if they come with a 400.
 */
function isNoVerdict(error: unknown, isHttp: boolean): boolean {
  if (!isHttp)
    return !(error instanceof RpcError || error instanceof ClosedError || error instanceof ConnectError);
  const status = statusOf(error);
  if (status === 401 || status === 403 || (status !== undefined && status >= 500)) return true;
  if (error instanceof RpcError) return status === 400 && modernCodes.has(error.rpcCode);
  return !(error instanceof HttpError);
}

/** Whether the server may be one of 2024-11-05, which takes no POST where it streams. */
export function mayBeHttpSse(error: unknown): boolean {
  const status = statusOf(error);
  if (status !== 400 && status !== 404 && status !== 405) return false;
  return !(error instanceof RpcError && modernCodes.has(error.rpcCode));
}

const modernCodes = new Set<number>([
  rpcCodes["rpc.header_mismatch"],
  rpcCodes["rpc.missing_capability"],
  rpcCodes["rpc.unsupported_version"],
]);

/** The HTTP status an error came with. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpError) return error.status;
  return error instanceof RpcError && error.cause instanceof HttpError ? error.cause.status : undefined;
}

/** Which era a server turned out to speak. */
type Verdict = "modern" | "legacy";

/** Remembers verdicts, so that a server is not probed again by every client. Share one between clients. */
export interface EraCache {
  get(key: string): Verdict | undefined;
  set(key: string, verdict: Verdict): void;
  delete(key: string): void;
}

const maxEntries = 1000;

/**
 * A cache in memory. A verdict of *legacy* succeeds forever against a server that was upgraded meanwhile, so it expires;
 * a wrong *modern* one fails loudly and is dropped then.
 */
export function createEraCache(
  options: { readonly legacyTtlMs?: number; readonly now?: () => number } = {},
): EraCache {
  const { legacyTtlMs = 10 * 60_000, now = systemClock.now } = options;
  const entries = new Map<string, { readonly verdict: Verdict; readonly expiresAt: number }>();
  return {
    get: (key) => {
      const entry = entries.get(key);
      if (entry === undefined || entry.expiresAt > now()) return entry?.verdict;
      entries.delete(key);
      return undefined;
    },
    set: (key, verdict) => {
      const expiresAt = verdict === "legacy" ? now() + legacyTtlMs : Number.POSITIVE_INFINITY;
      setNewest(entries, key, { verdict, expiresAt }, maxEntries);
    },
    delete: (key) => void entries.delete(key),
  };
}
