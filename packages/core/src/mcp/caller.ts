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
  /** When the caller must prove anew who it is, in milliseconds since the epoch. Its streams end then. */
  readonly expiresAt?: number;
}
