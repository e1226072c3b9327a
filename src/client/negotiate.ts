import { randomBytes } from "node:crypto";
import { type Clock, settlesWithin } from "../async/clock.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { ConnectError } from "../errors/connect-error.ts";
import { HttpError } from "../errors/http-error.ts";
import { RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import { isImplementation } from "../mcp/envelope.ts";
import type { Link } from "../mcp/link.ts";
import { metaKeys } from "../mcp/meta-keys.ts";
import {
  isLegacyRevision,
  isModernRevision,
  type LegacyRevision,
  type ModernRevision,
  newestLegacyRevision,
  newestModernRevision,
  type Revision,
} from "../mcp/revision.ts";
import type { ClientCapabilities, Implementation, ServerCapabilities } from "../mcp/types.ts";
import type { Agreement } from "./agreement.ts";
import { createModernEnvelope } from "./envelope.ts";
import type { EraCache } from "./era-cache.ts";

export interface NegotiateOptions {
  readonly clientInfo: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly eras: EraCache;
  /** Names the endpoint and the credential in the cache of eras. */
  readonly cacheKey: string;
  /** Speak this revision or none. */
  readonly revision?: Revision | undefined;
  /** How long a server may be silent before a pipe is taken for a legacy one. */
  readonly probeTimeoutMs: number;
  /** How long the whole may take. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** A link on which the era is settled. */
export interface Negotiated {
  readonly link: Link;
  readonly agreement: Agreement;
}

/** Opens a link; `isRetry` says that the last one did not survive being probed. */
export type OpenLink = (isRetry: boolean) => Promise<Link>;

type ProbeVerdict = { readonly kind: "modern"; readonly agreement: Agreement } | { readonly kind: "legacy" };

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
  const { revision, eras, cacheKey } = options;
  const known =
    revision === undefined ? eras.get(cacheKey) : isModernRevision(revision) ? "modern" : "legacy";
  let link = await open(false);
  try {
    if (known !== "legacy") {
      const verdict = await probe(link, isHttp, known === "modern", options);
      if (verdict.kind === "modern") {
        eras.set(cacheKey, "modern");
        return { link, agreement: verdict.agreement };
      }
      if (await isGone(link, options.clock)) {
        await link[Symbol.asyncDispose]();
        link = await open(true);
      }
    }
    const agreement = await initializeOrDiscover(link, isHttp, options);
    eras.set(cacheKey, agreement.mode.kind);
    return { link, agreement };
  } catch (error) {
    eras.delete(cacheKey);
    await link[Symbol.asyncDispose]();
    throw error;
  }
}

/** A modern server that was too slow for the probe says, when it refuses `initialize`, what it speaks. */
async function initializeOrDiscover(
  link: Link,
  isHttp: boolean,
  options: NegotiateOptions,
): Promise<Agreement> {
  const { revision } = options;
  try {
    return await initialize(link, isLegacyRevision(revision) ? revision : newestLegacyRevision, options);
  } catch (error) {
    const other = otherRevision(error, newestModernRevision);
    if (revision !== undefined || other === undefined || other === "legacy" || other === "disjoint")
      throw error;
    const verdict = await discover(link, other, isHttp, options);
    if (verdict.kind === "modern") return verdict.agreement;
    throw error;
  }
}

/** Some legacy servers exit on anything before `initialize`; a moment tells. */
function isGone(link: Link, clock: Clock): Promise<boolean> {
  return settlesWithin(link.closed, 0, clock);
}

async function probe(
  link: Link,
  isHttp: boolean,
  mustBeModern: boolean,
  options: NegotiateOptions,
): Promise<ProbeVerdict> {
  const first = isModernRevision(options.revision) ? options.revision : newestModernRevision;
  try {
    return await discover(link, first, isHttp, options);
  } catch (error) {
    const other = otherRevision(error, first);
    if (other === "disjoint") throw error;
    if (other !== undefined && other !== "legacy") return discover(link, other, isHttp, options);
    if (mustBeModern && isModernRevision(options.revision)) throw error;
    if (other === undefined && isNoVerdict(error, isHttp)) throw error;
    return { kind: "legacy" };
  }
}

async function discover(
  link: Link,
  revision: ModernRevision,
  isHttp: boolean,
  options: NegotiateOptions,
): Promise<ProbeVerdict> {
  const { clientInfo, capabilities, probeTimeoutMs, timeoutMs, clock } = options;
  const controller = new AbortController();
  link.use({ kind: "modern", revision });
  const limitMs = isHttp ? timeoutMs : probeTimeoutMs;
  const stop = clock.timer(limitMs, () =>
    controller.abort(new ConnectError(link.target, `no answer within ${limitMs} ms`)),
  );
  try {
    const result = await link.request({
      method: "server/discover",
      params: createModernEnvelope(revision, clientInfo, capabilities)(undefined, {}),
      signal: controller.signal,
      id: `probe-${randomBytes(6).toString("hex")}`,
    });
    return toVerdict(result, revision);
  } finally {
    stop();
  }
}

function toVerdict(result: RawJson, revision: ModernRevision): ProbeVerdict {
  const value = result.value as { readonly [key: string]: unknown };
  const versions = value["supportedVersions"];
  const capabilities = value["capabilities"];
  if (!Array.isArray(versions) || typeof capabilities !== "object" || capabilities === null)
    return { kind: "legacy" };
  if (!versions.includes(revision)) {
    if (versions.some(isLegacyRevision)) return { kind: "legacy" };
    throw new RpcError(
      "rpc.unsupported_version",
      `The server speaks ${versions.join(", ")} and this client does not`,
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

/** What a server that refused our revision offers instead: one we both know, a legacy one, or nothing. */
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

/** Whether a failed probe says nothing about the era. */
function isNoVerdict(error: unknown, isHttp: boolean): boolean {
  if (!isHttp)
    return error instanceof ConnectError
      ? false
      : !(error instanceof RpcError || error instanceof ClosedError);
  if (error instanceof RpcError) {
    return (
      error.rpcCode === rpcCodes["rpc.header_mismatch"] ||
      error.rpcCode === rpcCodes["rpc.missing_capability"]
    );
  }
  return !(error instanceof HttpError) || error.status === 401 || error.status === 403 || error.status >= 500;
}

async function initialize(
  link: Link,
  revision: LegacyRevision,
  options: NegotiateOptions,
): Promise<Agreement> {
  const { capabilities, clientInfo, timeoutMs, clock } = options;
  link.use({ kind: "legacy", revision: undefined });
  const controller = new AbortController();
  const stop = clock.timer(timeoutMs, () =>
    controller.abort(new ConnectError(link.target, `no answer to initialize within ${timeoutMs} ms`)),
  );
  let value: { readonly [key: string]: unknown };
  try {
    const params = RawJson.fromValue({ protocolVersion: revision, capabilities, clientInfo });
    const result = await link.request({ method: "initialize", params, signal: controller.signal });
    value = result.value as { readonly [key: string]: unknown };
  } finally {
    stop();
  }
  const { protocolVersion, capabilities: offered, serverInfo, instructions } = value;
  if (!isLegacyRevision(protocolVersion)) {
    throw new ConnectError(
      link.target,
      `it speaks the protocol revision ${String(protocolVersion)}, which this client does not`,
    );
  }
  if (options.revision !== undefined && protocolVersion !== options.revision) {
    throw new ConnectError(
      link.target,
      `it answered with revision ${protocolVersion}, and ${options.revision} was asked for`,
    );
  }
  link.use({ kind: "legacy", revision: protocolVersion });
  await link.notify("notifications/initialized", undefined);
  return {
    mode: { kind: "legacy", revision: protocolVersion },
    serverInfo: isImplementation(serverInfo) ? serverInfo : undefined,
    capabilities: (typeof offered === "object" && offered !== null ? offered : {}) as ServerCapabilities,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}
