import { RpcError } from "../errors/index.ts";
import { RawJson } from "../json/index.ts";
import { projectImplementation } from "./projection.ts";
import { isLegacyRevision, type LegacyRevision, newestLegacyRevision } from "./revision.ts";
import {
  type ClientCapabilities,
  type Implementation,
  isImplementation,
  type LogLevel,
  type ServerCapabilities,
} from "./types.ts";

/** The HTTP header that names a legacy session. */
export const sessionHeader = "mcp-session-id";

/** What a legacy client settled with `initialize`. Plain data, so that it can be sealed into a session id. */
export interface Handshake {
  readonly revision: LegacyRevision;
  readonly capabilities: ClientCapabilities;
  readonly clientInfo: Implementation;
}

/** Sends a notification that belongs to no request to one legacy session. */
export type Announce = (method: string, params: RawJson | undefined) => void;

/** The legacy conversation on one channel, or under one HTTP session id. */
export interface Session {
  readonly handshake: Handshake;
  /** Set by `logging/setLevel`; until then the server decides. */
  logLevel: LogLevel | undefined;
  /** The URIs named by `resources/subscribe`, and what ends watching each. */
  readonly subscriptions: Map<string, () => void>;
  /** Sends the client what belongs to no request; set while a server is attached. */
  announce: Announce | undefined;
  /** The caller as its last request proved it: a caller that comes with a new token may have other rights. */
  identity: Caller | undefined;
}

/** A session as it is right after its handshake. */
export function createSession(handshake: Handshake): Session {
  return {
    handshake,
    logLevel: undefined,
    subscriptions: new Map(),
    announce: undefined,
    identity: undefined,
  };
}

/**
 * Reads the params of `initialize` and settles the revision: the one asked for if it is a legacy one we know, else our
 * newest legacy one. A modern revision is never agreed on this way.
 */
export function parseInitialize(params: RawJson | undefined): Handshake {
  const value = (params?.value ?? {}) as Record<string, unknown>;
  const { protocolVersion, capabilities = {}, clientInfo } = value;
  if (typeof protocolVersion !== "string")
    throw invalid("protocolVersion must be a string such as 2025-11-25");
  if (typeof capabilities !== "object" || capabilities === null || Array.isArray(capabilities)) {
    throw invalid("capabilities must be an object");
  }
  if (!isImplementation(clientInfo))
    throw invalid("clientInfo must be an object with the strings name and version");
  const revision = isLegacyRevision(protocolVersion) ? protocolVersion : newestLegacyRevision;
  return { revision, capabilities: capabilities as ClientCapabilities, clientInfo };
}

/** The result of `initialize`. */
export function toInitializeResult(
  revision: LegacyRevision,
  capabilities: ServerCapabilities,
  serverInfo: Implementation,
  instructions: string | undefined,
): RawJson {
  return RawJson.fromValue({
    protocolVersion: revision,
    capabilities,
    serverInfo: projectImplementation(serverInfo, revision),
    ...(instructions === undefined ? {} : { instructions }),
  });
}

function invalid(text: string): RpcError {
  return new RpcError("rpc.invalid_params", `Invalid params: ${text}`);
}

/**
 * A caller that a transport knows. Everything beyond the name comes from a token or certificate that was checked; callers with
 * a key have a name only.
 */
export interface Caller {
  /** Unique among all callers: `ISSUER:SUBJECT` for one that came with a token. Sessions, limits and records go by it. */
  readonly name: string;
  /** The URL of the issuer that vouches for the caller. */
  readonly issuer?: string;
  /** Who the caller is, in the words of the issuer. */
  readonly subject?: string;
  /** The OAuth client that acts for the caller. */
  readonly clientId?: string;
  readonly scopes?: readonly string[];
  readonly groups?: readonly string[];
  /** When the caller must prove again who it is, in milliseconds since the epoch. Its streams end then. */
  readonly expiresAt?: number;
}
