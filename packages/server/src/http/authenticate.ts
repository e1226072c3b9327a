import type { Awaitable } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import type { Caller, HeaderLookup } from "@junctor/core/mcp";

/** A caller that needs no name. */
export const anybody: unique symbol = Symbol("anybody");

/** Why a request is refused, and what its client can do about it. */
export interface AuthRefusal {
  /** The HTTP status. */
  readonly refused: 400 | 401 | 403 | 503;
  readonly text: string;
  /** The value of `WWW-Authenticate`. */
  readonly challenge?: string;
}

/**
 * The sender of a request: a caller, or its name alone. {@link anybody} lets the request in without a name; undefined refuses it
 * with 401, and a refusal as it says.
 */
export type Authenticated = Caller | string | typeof anybody | AuthRefusal | undefined;

/** The facts besides the headers that identify the sender of a request. */
export interface AuthRequest {
  /** The path of the URL. */
  readonly path: string;
  /** The certificate that the client proved to own, on a connection with TLS that asks for one; undefined when there is none. */
  readonly certificate?: ClientCertificate | undefined;
  /** The address that the request came from. Limits for callers without a name are counted by it. */
  readonly remoteAddress?: string | undefined;
}

/** A certificate of a client, signed by an authority that the listener trusts. */
export interface ClientCertificate {
  /** The common name of its subject. */
  readonly name: string;
  /** The organizational units of its subject. */
  readonly units: readonly string[];
  /** The common name of the authority that signed it. */
  readonly issuer: string;
  /** In milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Its SHA-256 thumbprint in base64url, as the `x5t#S256` of a token that is bound to it (RFC 8705). */
  readonly thumbprint: string;
}

/** Finds out who sent a request. A function with the headers as its only parameter is enough. */
export interface Authenticate {
  (header: HeaderLookup, request?: AuthRequest): Awaitable<Authenticated>;
  /**
   * A document that every client and every web page may read, such as the metadata of a protected resource. `isServed` says
   * whether there is an endpoint at a path.
   */
  readonly documentAt?: (path: string, isServed: (path: string) => boolean) => RawJson | undefined;
  /** The challenge for a caller that lacks scopes for what it wants to do at a path. */
  readonly challengeFor?: (scopes: readonly string[], path: string) => string;
}

/** The caller that `authenticate` found, if it has a name. */
export function toCaller(known: Authenticated): Caller | undefined {
  if (typeof known === "string") return { name: known };
  const isCaller = typeof known === "object" && known !== null && "name" in known;
  return isCaller && typeof known.name === "string" ? known : undefined;
}

/** What a challenge says (RFC 6750, section 3, and RFC 9728, section 5.1). */
interface Challenge {
  readonly error?: "invalid_request" | "invalid_token" | "insufficient_scope";
  /** For the person who reads the log of the client. */
  readonly description?: string;
  /** The URL of the resource's metadata, where it has one. */
  readonly metadataUrl: string | undefined;
  /** All scopes that are needed. */
  readonly scopes: readonly string[];
}

/** A challenge as the value of `WWW-Authenticate`. */
export function toChallenge({ error, description, metadataUrl, scopes }: Challenge): string {
  const scope = scopes.length === 0 ? undefined : scopes.join(" ");
  const parameters = Object.entries({
    error,
    error_description: description,
    resource_metadata: metadataUrl,
    scope,
  }).flatMap(([name, value]) => (value === undefined ? [] : [`${name}="${toQuoted(value)}"`]));
  return parameters.length === 0 ? "Bearer" : `Bearer ${parameters.join(", ")}`;
}

/** A value without the characters that RFC 6750 does not allow in parameters. */
function toQuoted(text: string): string {
  return text.replaceAll(/[^\u0020\u0021\u0023-\u005B\u005D-\u007E]/g, "");
}
