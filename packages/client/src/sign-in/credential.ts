import type { AuthorizationServer } from "oauth4webapi";
import type { OAuthClient } from "./client-registration.ts";

/** The part of an authorization server's metadata that its tokens need later. */
interface TokenIssuer {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string;
}

/** The access that one owner has to one server. */
export interface Credential {
  readonly issuer: TokenIssuer;
  /** The server as its authorization server knows it; it goes with every request for a token. */
  readonly resource?: string;
  readonly client: OAuthClient;
  readonly accessToken: string;
  readonly refreshToken?: string;
  /** In ms since the epoch; undefined when the authorization server did not say. */
  readonly expiresAt?: number;
  /** How long the token was good for at first. */
  readonly lifetimeMs?: number;
  /** Those that were granted; those that were asked for where the answer does not say. */
  readonly scopes: readonly string[];
}

/**
 * Keeps credentials, and the clients that were registered, by id. Values are JSON. What is written is kept when `write` resolves, also
 * if the process is killed then.
 */
export interface CredentialStore {
  read(id: string): Promise<object | undefined>;
  write(id: string, value: object): Promise<void>;
  remove(id: string): Promise<void>;
  /** Runs work while no other process, and no other work of this one, does so under the same id. */
  alone<T>(id: string, work: () => Promise<T>): Promise<T>;
}

/** A store that ends with the process. */
export function createMemoryStore(): CredentialStore {
  const records = new Map<string, object>();
  const queues = new Map<string, Promise<unknown>>();
  return {
    read: (id) => Promise.resolve(records.get(id)),
    write: (id, value) => Promise.resolve(void records.set(id, value)),
    remove: (id) => Promise.resolve(void records.delete(id)),
    alone: (id, work) => {
      const before = queues.get(id) ?? Promise.resolve();
      const done = before.then(work, work);
      const settled = done.then(
        () => {},
        () => {},
      );
      queues.set(id, settled);
      void settled.then(() => {
        if (queues.get(id) === settled) queues.delete(id);
      });
      return done;
    },
  };
}

/** The id of the credential that an owner has for a server. */
export function credentialId(server: URL, owner: string): string {
  return JSON.stringify(["credential", server.href, owner]);
}

/** The id of the client that was registered at an issuer. Credentials of one issuer are never shown to another. */
export function clientRecordId(issuer: string, redirectUrl: string): string {
  return JSON.stringify(["client", issuer, redirectUrl]);
}

/** The metadata of an issuer as far as a credential has it. */
export function toServer({ issuer, tokenEndpoint }: TokenIssuer): AuthorizationServer {
  return { issuer, token_endpoint: tokenEndpoint };
}

/** The part of an issuer's metadata that is kept; undefined when it has no token endpoint. */
export function toTokenIssuer(as: AuthorizationServer): TokenIssuer | undefined {
  const { issuer, token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint } = as;
  if (tokenEndpoint === undefined) return undefined;
  return { issuer, tokenEndpoint, ...(revocationEndpoint === undefined ? {} : { revocationEndpoint }) };
}
