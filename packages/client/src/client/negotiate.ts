import { randomBytes } from "node:crypto";
import { fromSignal, type Clock } from "@junctor/core/async";
import { ClosedError, ConnectError, RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
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
} from "@junctor/core/mcp";
import type { Agreement } from "./conversation.ts";
import { createModernEnvelope } from "./conversation.ts";
import type { EraCache } from "./era-cache.ts";
import { initialize, noAnswer } from "./initialize.ts";
import { isNoVerdict, otherRevision } from "./verdict.ts";

interface NegotiateOptions {
  readonly clientInfo: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly eras: EraCache;
  /** Names the endpoint and the credential in the cache of eras; without it nothing is remembered. */
  readonly cacheKey: string | undefined;
  /** Speak this revision or none. */
  readonly revision?: Revision | undefined;
  /** The era that is tried first; modern when left out. */
  readonly era?: "modern" | "legacy" | undefined;
  /** How long a server may be silent before a pipe is taken for a legacy one. */
  readonly probeTimeoutMs: number;
  /** How long each step may take; a server that is being started, how long it may go without a sign of progress. */
  readonly timeoutMs: number;
  /** How long a server that is being started may take in all. */
  readonly maxTotalMs: number;
  readonly clock: Clock;
  /** Aborting gives it up. */
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
 * Finds out what a server speaks and settles it. Modern is tried first; any answer but a modern one, and on a pipe also
 * silence or the end of the server, means legacy. Authorization, server faults and a broken network mean neither, and
 * are thrown.
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
      // What ended because we gave it up is not started again.
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

/** Some legacy servers exit on anything before `initialize`; a turn of the event loop tells. */
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
