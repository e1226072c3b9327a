import { RpcError } from "../errors/index.ts";
import type { RawJson } from "../json/index.ts";
import type { Batch, Notification, Request } from "../rpc/index.ts";
import { assertMirrored, type HeaderLookup, mismatch } from "./mirrored-headers.ts";
import { metaKeys } from "./params.ts";
import { isLegacyRevision, isModernRevision, type ModernRevision, modernRevisions } from "./revision.ts";
import type { Session } from "./session.ts";
import {
  type ClientCapabilities,
  type Implementation,
  isImplementation,
  isLogLevel,
  type LogLevel,
} from "./types.ts";

export type { HeaderLookup } from "./mirrored-headers.ts";

/**
 * A request that describes itself. What it says about its sender holds for that request
 * only and is never remembered.
 */
export interface ModernEra {
  readonly kind: "modern";
  readonly revision: ModernRevision;
  readonly capabilities: ClientCapabilities;
  readonly clientInfo: Implementation | undefined;
  readonly logLevel: LogLevel | undefined;
  /** True when `_meta` has the members of the envelope only: no trace, no progress token. False also where this was not checked. */
  readonly isBare: boolean;
}

/** A legacy message. There is no session yet for `initialize`, and for a `ping` before it. */
export interface LegacyEra {
  readonly kind: "legacy";
  readonly session: Session | undefined;
}

export type Era = ModernEra | LegacyEra;

/** The answer to "which protocol is this message written in?" */
export type EraDecision = Era | { readonly kind: "refused"; readonly error: RpcError };

export interface EraFacts {
  /** The legacy session the message came in, if there is one. */
  readonly session?: Session | undefined;
  /** Present on HTTP only: there a modern request says some things twice, and both must agree. */
  readonly headers?: HeaderLookup | undefined;
  /** Which eras are served; both by default. */
  readonly serves?: "both" | "legacy" | "modern" | undefined;
}

/**
 * Decides the era of one message. The body decides; headers are a cross-check. A message that claims a revision is
 * modern or refused, never quietly legacy. The one function behind every transport.
 */
export function decideEra(message: Request | Notification, facts: EraFacts = {}): EraDecision {
  const { session, serves = "both" } = facts;
  const header = facts.headers?.("mcp-protocol-version")?.trim();
  if (serves === "legacy") {
    const isForeign = session !== undefined && header !== undefined && !isLegacyRevision(header);
    return isForeign ? refusedHeader(header) : decideLegacy(message, session);
  }
  try {
    const meta = metaOf(message.params);
    if (meta?.has(metaKeys.protocolVersion) === true) {
      const envelope = readEnvelope(message, meta);
      if (envelope !== undefined) return decideModern(message, envelope, header, facts.headers);
    } else if (header !== undefined && !isLegacyRevision(header)) {
      if (message.kind === "request") refuseUnclaimed(message, meta, header);
      return toModern(header, anonymous) ?? refuseVersion(header);
    }
    if (serves === "modern") refuseLegacy(message);
  } catch (error) {
    if (error instanceof RpcError) return { kind: "refused", error };
    throw error;
  }
  return decideLegacy(message, session);
}

/** Whether the params claim a protocol revision, which is what makes a message modern. */
function hasClaim(params: RawJson | undefined): boolean {
  return metaOf(params)?.has(metaKeys.protocolVersion) === true;
}

/** The `_meta` member, where it is an object. */
export function metaOf(params: RawJson | undefined): RawJson | undefined {
  const meta = params?.at("_meta");
  return meta?.kind === "object" ? meta : undefined;
}

/**
 * Undefined for an `initialize` whose `_meta` is not a valid envelope: that is a legacy handshake. For a
 * notification, only the revision is read.
 */
function readEnvelope(message: Request | Notification, meta: RawJson): Envelope | undefined {
  try {
    if (message.kind === "request") return parseEnvelope(meta);
    const protocolVersion = parseClaim(meta);
    return { protocolVersion, era: toModern(protocolVersion, anonymous) };
  } catch (error) {
    if (message.method === "initialize") return undefined;
    throw error;
  }
}

const anonymous = {
  capabilities: Object.freeze({}),
  clientInfo: undefined,
  logLevel: undefined,
  isBare: false,
};

function decideModern(
  message: Request | Notification,
  { protocolVersion, era }: Envelope,
  header: string | undefined,
  headers: HeaderLookup | undefined,
): ModernEra {
  if (header !== undefined && header !== protocolVersion)
    throw mismatch("MCP-Protocol-Version", header, protocolVersion);
  if (era === undefined) return refuseVersion(protocolVersion);
  if (headers !== undefined && message.kind === "request") assertMirrored(message, header, headers);
  return era;
}

/** Undefined for a revision we do not serve. */
function toModern(revision: string, sender: Omit<ModernEra, "kind" | "revision">): ModernEra | undefined {
  return isModernRevision(revision) ? { kind: "modern", revision, ...sender } : undefined;
}

function refuseUnclaimed(message: Request, meta: RawJson | undefined, header: string): void {
  if (message.method === "initialize") throw mismatch("MCP-Protocol-Version", header, "a legacy handshake");
  parseEnvelope(meta);
}

function refuseLegacy(message: Request | Notification): void {
  if (message.method === "initialize") {
    const requested = message.params?.at("protocolVersion")?.value;
    refuseVersion(typeof requested === "string" ? requested : "unknown");
  }
  if (message.kind === "request") parseEnvelope(metaOf(message.params));
}

function decideLegacy(message: Request | Notification, session: Session | undefined): EraDecision {
  const needsSession =
    message.kind === "request" && message.method !== "initialize" && message.method !== "ping";
  if (!needsSession || session !== undefined) return { kind: "legacy", session };
  const text = `Server not initialized: send initialize before ${message.method}, or say the revision in _meta`;
  return { kind: "refused", error: new RpcError("rpc.not_initialized", text) };
}

/** A session has settled its revision; a header that names another one is a mistake (2025-06-18, transports). */
function refusedHeader(header: string): EraDecision {
  const text = `Bad MCP-Protocol-Version: ${JSON.stringify(header)} is not a revision of this session's era`;
  return { kind: "refused", error: new RpcError("rpc.invalid_request", text) };
}

function refuseVersion(requested: string): never {
  const text = `Unsupported protocol version: ${requested}; supported: ${modernRevisions.join(", ")}`;
  throw new RpcError("rpc.unsupported_version", text, { data: { supported: modernRevisions, requested } });
}

/**
 * Whether a batch is legal in a session. Only 2025-03-26 has them, and it keeps the handshake out of them; a message
 * that says it is modern belongs to a revision without batches.
 */
export function isLegalBatch(batch: Batch, session: Session | undefined): boolean {
  if (session?.handshake.revision !== "2025-03-26") return false;
  return batch.items.every((item) => {
    if (item.kind !== "request" && item.kind !== "notification") return true;
    return item.method !== "initialize" && !hasClaim(item.params);
  });
}

/** The part of a modern request that describes its sender. */
export interface Envelope {
  readonly protocolVersion: string;
  /** Undefined when we do not serve that revision. */
  readonly era: ModernEra | undefined;
}

/** An envelope, and how it was spelled. */
interface KnownEnvelope {
  readonly spelling: string;
  readonly envelope: Envelope;
}

/**
 * Envelopes by how they were spelled: a client describes itself alike in every request, and parsing that
 * is half the work. An envelope is found by the members it is made from; where `_meta` holds nothing
 * else, also by its whole text, which is quicker. A trace or a progress token, which differs from call to
 * call, is part of neither.
 */
const known = new Map<string, KnownEnvelope>();
/** The last one found: comparing two texts is quicker than hashing one. */
let last: KnownEnvelope | undefined;
const maxKnown = 256;
const maxKnownLength = 2048;

/** Reads the envelope of a modern request. Throws `-32602` naming the key that is missing or malformed. */
export function parseEnvelope(meta: RawJson | undefined): Envelope {
  const text = meta?.has("progressToken") === false ? meta.text : undefined;
  if (text !== undefined) {
    if (text === last?.spelling) return last.envelope;
    const same = known.get(text);
    if (same !== undefined) {
      last = same;
      return same.envelope;
    }
  }
  const spelling = spell(meta);
  let envelope = known.get(spelling)?.envelope;
  if (envelope === undefined) {
    envelope = toEnvelope(meta);
    keep(spelling, envelope);
  }
  if (meta === undefined || text?.length !== bareLength(meta, spelling)) return envelope;
  const { protocolVersion, era } = envelope;
  const bare = Object.freeze({ protocolVersion, era: era && Object.freeze({ ...era, isBare: true }) });
  keep(text, bare);
  return bare;
}

function keep(spelling: string, envelope: Envelope): void {
  if (spelling.length > maxKnownLength) return;
  if (known.size >= maxKnown) known.clear();
  known.set(spelling, { spelling, envelope });
}

/** The members an envelope is made from, as they were spelled. No JSON begins with a comma, so this is not a whole `_meta`. */
function spell(meta: RawJson | undefined): string {
  return envelopeKeys.reduce((spelling, key) => `${spelling},${meta?.textOf(key) ?? ""}`, "");
}

/** How long `_meta` is when it holds the members of its envelope, no white space and nothing else. */
function bareLength(meta: RawJson, spelling: string): number {
  // The spelling has a comma for each key, and the text one character more for its two braces.
  const valuesAndBraces = spelling.length - envelopeKeys.length + 1;
  return envelopeKeys.reduce(
    (length, key) => (meta.has(key) ? length + key.length + '"":,'.length : length),
    valuesAndBraces,
  );
}

const envelopeKeys = [
  metaKeys.protocolVersion,
  metaKeys.clientCapabilities,
  metaKeys.clientInfo,
  metaKeys.logLevel,
];

function toEnvelope(meta: RawJson | undefined): Envelope {
  const protocolVersion = parseClaim(meta);
  const capabilities = required(meta, metaKeys.clientCapabilities);
  if (capabilities.kind !== "object") throw malformed(metaKeys.clientCapabilities, "an object; {} says none");
  const clientInfo = meta?.at(metaKeys.clientInfo);
  if (clientInfo !== undefined && !isImplementation(clientInfo.value)) {
    throw malformed(metaKeys.clientInfo, "an object with the strings name and version");
  }
  const logLevel = meta?.at(metaKeys.logLevel)?.value;
  if (logLevel !== undefined && !isLogLevel(logLevel))
    throw malformed(metaKeys.logLevel, "a log level such as info");
  const era = toModern(protocolVersion, {
    capabilities: capabilities.value as ClientCapabilities,
    clientInfo: clientInfo?.value as Implementation | undefined,
    logLevel,
    isBare: false,
  });
  // Deeply frozen: all senders that describe themselves alike share it.
  return deepFreeze({ protocolVersion, era });
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(deepFreeze);
    Object.freeze(value);
  }
  return value;
}

/** The revision a modern message says it is written in. Throws `-32602` when it is missing or not a string. */
function parseClaim(meta: RawJson | undefined): string {
  const version = required(meta, metaKeys.protocolVersion);
  if (version.kind !== "string") throw malformed(metaKeys.protocolVersion, "a string such as 2026-07-28");
  return version.value as string;
}

function required(meta: RawJson | undefined, key: string): RawJson {
  const value = meta?.at(key);
  if (value === undefined) {
    throw new RpcError(
      "rpc.invalid_params",
      `Invalid params: _meta["${key}"] is missing; modern requests carry it`,
    );
  }
  return value;
}

function malformed(key: string, expected: string): RpcError {
  return new RpcError("rpc.invalid_params", `Invalid params: _meta["${key}"] must be ${expected}`);
}
