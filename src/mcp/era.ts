import { RpcError } from "../errors/rpc-error.ts";
import type { Notification, Request } from "../jsonrpc/message.ts";
import { type Envelope, hasClaim, parseClaim, parseEnvelope } from "./envelope.ts";
import { decodeHeaderValue } from "./header-value.ts";
import { isLegacyRevision, isModernRevision, type ModernRevision, modernRevisions } from "./revision.ts";
import type { Session } from "./session.ts";

/** A request that describes itself; nothing is remembered from an earlier one. */
export interface ModernEra extends Omit<Envelope, "protocolVersion"> {
  readonly kind: "modern";
  readonly revision: ModernRevision;
}

/** A message of a legacy conversation; there is no session yet for `initialize` and for a `ping` before it. */
export interface LegacyEra {
  readonly kind: "legacy";
  readonly session: Session | undefined;
}

export type Era = ModernEra | LegacyEra;

/** The answer to "which protocol is this message written in?" */
export type EraDecision = Era | { readonly kind: "refused"; readonly error: RpcError };

/** Finds an HTTP header by its lower-case name. */
export type HeaderLookup = (name: string) => string | undefined;

export interface EraFacts {
  /** The legacy session the message came in, if there is one. */
  readonly session?: Session | undefined;
  /** Present on HTTP only: there a modern request says some things twice, and both must agree. */
  readonly headers?: HeaderLookup | undefined;
  /** Which eras are served; both unless told otherwise. */
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
    if (hasClaim(message.params)) {
      const envelope = readEnvelope(message);
      if (envelope !== undefined) return decideModern(message, envelope, header, facts.headers);
    } else if (header !== undefined && !isLegacyRevision(header)) {
      if (message.kind === "request") refuseUnclaimed(message, header);
      return toModern({ protocolVersion: header, ...anonymous });
    }
    if (serves === "modern") refuseLegacy(message);
  } catch (error) {
    if (error instanceof RpcError) return { kind: "refused", error };
    throw error;
  }
  return decideLegacy(message, session);
}

/**
 * Undefined for a handshake that merely carries modern-looking `_meta`: that is a legacy client being careful. Of a
 * notification nothing but the revision is wanted.
 */
function readEnvelope(message: Request | Notification): Envelope | undefined {
  try {
    if (message.kind === "notification") return { protocolVersion: parseClaim(message.params), ...anonymous };
    return parseEnvelope(message.params);
  } catch (error) {
    if (message.method === "initialize") return undefined;
    throw error;
  }
}

const anonymous = { capabilities: Object.freeze({}), clientInfo: undefined, logLevel: undefined };

function decideModern(
  message: Request | Notification,
  envelope: Envelope,
  header: string | undefined,
  headers: HeaderLookup | undefined,
): ModernEra {
  const { protocolVersion } = envelope;
  if (header !== undefined && header !== protocolVersion) {
    throw mismatch("MCP-Protocol-Version", header, protocolVersion);
  }
  const era = toModern(envelope);
  if (headers !== undefined && message.kind === "request") checkHeaders(message, header, headers);
  return era;
}

function toModern({ protocolVersion, capabilities, clientInfo, logLevel }: Envelope): ModernEra {
  if (!isModernRevision(protocolVersion)) throw unsupportedVersion(protocolVersion);
  return { kind: "modern", revision: protocolVersion, capabilities, clientInfo, logLevel };
}

/** The three headers every modern request repeats. `Mcp-Param-*` needs the tool's schema and is checked by the server. */
function checkHeaders(request: Request, version: string | undefined, headers: HeaderLookup): void {
  if (version === undefined) throw missing("MCP-Protocol-Version");
  const method = headers("mcp-method")?.trim();
  if (method === undefined) throw missing("Mcp-Method");
  if (method !== request.method) throw mismatch("Mcp-Method", method, request.method);
  const member = namedBy[request.method];
  if (member === undefined) return;
  const expected = request.params?.at(member)?.value;
  if (typeof expected !== "string") return; // The method itself refuses params without it.
  const name = headers("mcp-name")?.trim();
  if (name === undefined) throw missing("Mcp-Name");
  if (decodeHeaderValue(name) !== expected) throw mismatch("Mcp-Name", name, expected);
}

/** Which member of the params the header `Mcp-Name` mirrors. */
export const namedBy: { readonly [method: string]: "name" | "uri" | undefined } = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
};

function refuseUnclaimed(message: Request, header: string): void {
  if (message.method === "initialize") throw mismatch("MCP-Protocol-Version", header, "a legacy handshake");
  parseEnvelope(message.params);
}

function refuseLegacy(message: Request | Notification): void {
  if (message.method === "initialize") throw unsupportedVersion(requestedVersion(message));
  if (message.kind === "request") parseEnvelope(message.params);
}

function requestedVersion(message: Request | Notification): string {
  const requested = message.params?.at("protocolVersion")?.value;
  return typeof requested === "string" ? requested : "unknown";
}

function decideLegacy(message: Request | Notification, session: Session | undefined): EraDecision {
  const needsSession =
    message.kind === "request" && message.method !== "initialize" && message.method !== "ping";
  if (!needsSession || session !== undefined) return { kind: "legacy", session };
  const text = `Server not initialized: send initialize before ${message.method}, or say the revision in _meta`;
  return { kind: "refused", error: new RpcError("rpc.not_initialized", text) };
}

/** A session has settled its revision; a header that names one nobody agreed to is a mistake (2025-06-18, transports). */
function refusedHeader(header: string): EraDecision {
  const text = `Bad MCP-Protocol-Version: ${JSON.stringify(header)} is not a revision of this session's era`;
  return { kind: "refused", error: new RpcError("rpc.invalid_request", text) };
}

function unsupportedVersion(requested: string): RpcError {
  const text = `Unsupported protocol version: ${requested}; supported: ${modernRevisions.join(", ")}`;
  return new RpcError("rpc.unsupported_version", text, { data: { supported: modernRevisions, requested } });
}

function missing(header: string): RpcError {
  return new RpcError("rpc.header_mismatch", `Header mismatch: the header ${header} is missing`);
}

function mismatch(header: string, got: string, expected: string): RpcError {
  const text = `Header mismatch: ${header} is ${JSON.stringify(got)} but the body says ${JSON.stringify(expected)}`;
  return new RpcError("rpc.header_mismatch", text);
}
