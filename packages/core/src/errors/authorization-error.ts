import type { Delivery } from "./delivery.ts";

/** Why a request could not be authorized at its server. */
export type AuthorizationReason =
  /** A person must sign in. */
  | "login_required"
  /** The access that was granted is not enough for the request. */
  | "insufficient_scope"
  /** The authorization server must be told of this client by hand, or has no client of this id. */
  | "setup"
  /** The metadata of the server or of its authorization server is missing, contradicts itself or must not be fetched. */
  | "metadata"
  /** The answer that came back from the authorization server is not the one to our question. */
  | "callback"
  /** The authorization server, or the person, said no. */
  | "refused"
  /** The authorization server did not answer. */
  | "unreachable";

/** What a server demands of requests: the Bearer challenge of RFC 6750, section 3. */
export interface BearerChallenge {
  readonly status: 401 | 403;
  readonly error?: string;
  /** Where the metadata of the server is. */
  readonly resourceMetadata?: string;
  readonly scopes?: readonly string[];
}

/** A request to a server was not authorized, and was not carried out. It holds no token, code or secret. */
export class AuthorizationError extends Error {
  override readonly name = "AuthorizationError";
  readonly code: `auth.${AuthorizationReason}`;
  /** The URL of the server, without its query. */
  readonly server: string;
  /** Why, without the rest of the message. */
  readonly reason: string;
  /** What the server demanded, where it did. */
  readonly challenge: BearerChallenge | undefined;
  readonly delivery: Delivery = "not_sent";

  constructor(
    reason: AuthorizationReason,
    server: string,
    text: string,
    facts: { readonly challenge?: BearerChallenge; readonly cause?: unknown } = {},
  ) {
    super(`${server}: ${text}`, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = `auth.${reason}`;
    this.server = server;
    this.reason = text;
    this.challenge = facts.challenge;
  }
}
