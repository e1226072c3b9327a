import { AuthorizationError, type BearerChallenge } from "@junctor/core/errors";
import type { AuthorizationServer } from "oauth4webapi";
import { isLoopbackHost, fetchJson, type JsonMembers, type GuardedFetch } from "./guarded-fetch.ts";

/** Where and how a server wants requests to be authorized. */
export interface Discovered {
  /** The name of the server for its authorization server; undefined if the server has no metadata (2025-03-26). */
  readonly resource: string | undefined;
  readonly scopes: readonly string[];
  readonly as: AuthorizationServer;
  /** Whether there is no metadata at all. The endpoints are then those of a server of 2025-03-26. */
  readonly isGuess?: boolean;
}

interface DiscoverOptions {
  readonly server: URL;
  readonly fetch: GuardedFetch;
  readonly challenge?: BearerChallenge | undefined;
  /** The issuer that the user wrote into the config. It is used whatever the server says. */
  readonly issuer?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the metadata of a server (RFC 9728), and of the authorization server it names (RFC 8414 or OpenID Connect). Rejects with an
 * `AuthorizationError` if one of them is missing, or is about another server than the one asked for.
 */
export async function discover(options: DiscoverOptions): Promise<Discovered> {
  const { server, issuer } = options;
  const found = await findResourceMetadata(options);
  if (found === undefined) {
    // A server of 2025-03-26 is its own authorization server.
    const asked = issuer ?? server.origin;
    const names = issuer === undefined ? [server.origin, `${server.origin}/`] : [issuer];
    const as = await findServerMetadata(asked, names, options);
    if (as !== undefined) return { resource: undefined, scopes: [], as };
    return { resource: undefined, scopes: [], as: legacyEndpoints(server, issuer), isGuess: true };
  }
  const { resource, authorization_servers: servers, scopes_supported: scopes } = found;
  if (typeof resource !== "string" || !isOf(resource, server))
    throw failed(options, `its metadata is of another resource: ${describe(resource)}`);
  const [named] = Array.isArray(servers) ? (servers as readonly unknown[]) : [];
  const asked = issuer ?? named;
  if (typeof asked !== "string") throw failed(options, "its metadata names no authorization server");
  const as = await findServerMetadata(asked, [asked], options);
  if (as === undefined) throw failed(options, `${asked} has no metadata of an authorization server`);
  return { resource, scopes: Array.isArray(scopes) ? toScopes(scopes.join(" ")) : [], as };
}

async function findResourceMetadata(options: DiscoverOptions): Promise<JsonMembers | undefined> {
  const { server, challenge } = options;
  const wellKnown = `${server.origin}/.well-known/oauth-protected-resource`;
  const path = server.pathname === "/" ? "" : server.pathname;
  const named = challenge?.resourceMetadata;
  if (named !== undefined && (!URL.canParse(named) || new URL(named).origin !== server.origin))
    throw failed(options, `it names metadata elsewhere, at ${describe(named)}`);
  const urls = new Set([
    ...(named === undefined ? [] : [named]),
    `${wellKnown}${path}${server.search}`,
    wellKnown,
  ]);
  for (const url of urls) {
    const found = await fetchJson(new URL(url), options);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Whether `resource` is the server, or a path above it. */
function isOf(resource: string, server: URL): boolean {
  if (!URL.canParse(resource)) return false;
  const { origin, pathname, hash } = new URL(resource);
  if (origin !== server.origin || hash !== "") return false;
  const above = pathname.endsWith("/") ? pathname : `${pathname}/`;
  return `${server.pathname}/`.startsWith(above);
}

export async function findServerMetadata(
  asked: string,
  names: readonly string[],
  options: DiscoverOptions,
): Promise<AuthorizationServer | undefined> {
  if (!URL.canParse(asked)) throw failed(options, `its authorization server ${describe(asked)} is not a URL`);
  const { search, hash } = new URL(asked);
  if (search !== "" || hash !== "")
    throw failed(options, `its authorization server ${describe(asked)} has a query or fragment`);
  for (const url of metadataUrlsOf(new URL(asked))) {
    const found = await fetchJson(new URL(url), options);
    if (found !== undefined) return checkServerMetadata(found, names, options);
  }
  return undefined;
}

/** Where the metadata of an authorization server may be, in the order of search (RFC 8414, OpenID Connect). */
export function metadataUrlsOf({ origin, pathname }: URL): readonly string[] {
  const path = pathname.replace(/\/$/, "");
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ];
}

/** An authorization server that misnames itself may be another one (RFC 8414, section 3.3). */
function checkServerMetadata(
  found: JsonMembers,
  names: readonly string[],
  options: DiscoverOptions,
): AuthorizationServer {
  const { issuer } = found;
  if (typeof issuer !== "string" || !names.includes(issuer)) {
    const advice = "if that is right, write it as oauth.issuer into the config";
    throw failed(options, `${names[0]} calls itself ${describe(issuer)}; ${advice}`);
  }
  for (const key of ["authorization_endpoint", "token_endpoint", "registration_endpoint"]) {
    const url = found[key];
    if (url !== undefined && !isEndpoint(url, options.server))
      throw failed(options, `${issuer} names ${describe(url)} as its ${key}`);
  }
  return found as unknown as AuthorizationServer;
}

/** Whether a URL is HTTPS, or on this machine for a server on this machine. A browser is sent to one, so no other scheme is allowed. */
function isEndpoint(url: unknown, server: URL): boolean {
  if (typeof url !== "string" || !URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  if (username !== "" || password !== "") return false;
  if (protocol === "https:") return true;
  return protocol === "http:" && isLoopbackHost(hostname) && isLoopbackHost(server.hostname);
}

/** The endpoints of a server of 2025-03-26 without metadata. That revision requires PKCE. */
function legacyEndpoints({ origin }: URL, issuer = origin): AuthorizationServer {
  return {
    issuer,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    code_challenge_methods_supported: ["S256"],
  };
}

function failed({ server, challenge }: DiscoverOptions, text: string): AuthorizationError {
  return new AuthorizationError(
    "metadata",
    `${server.origin}${server.pathname}`,
    text,
    challenge === undefined ? {} : { challenge },
  );
}

/** A value that a server chose, for a message. */
function describe(value: unknown): string {
  return value === undefined ? "nothing" : JSON.stringify(value).slice(0, 200);
}

/** Longer headers are cut. */
const maxLength = 8192;

/**
 * The Bearer challenge among those of a `WWW-Authenticate` header (RFC 9110, section 11.6.1). Without one, a 401 is a challenge
 * all the same, and a 403 is not.
 */
export function parseChallenge(
  status: number,
  header: string | readonly string[] | undefined,
): BearerChallenge | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const text = (typeof header === "string" ? header : (header ?? []).join(", ")).slice(0, maxLength);
  const params = bearerParams(text);
  if (params === undefined) return status === 401 ? { status } : undefined;
  const error = params.get("error");
  const resourceMetadata = params.get("resource_metadata");
  const scopes = toScopes(params.get("scope"));
  return {
    status,
    ...(error === undefined ? {} : { error }),
    ...(resourceMetadata === undefined ? {} : { resourceMetadata }),
    ...(scopes.length === 0 ? {} : { scopes }),
  };
}

/** The scopes of a space-separated list, each once. */
export function toScopes(text: string | undefined): readonly string[] {
  return [...new Set((text ?? "").split(" ").filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)))];
}

/** A scheme, or a parameter of the scheme before it. Both begin with a token. */
const schemeOrParameter = /\s*,?\s*([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/gy;

function bearerParams(text: string): ReadonlyMap<string, string> | undefined {
  let params: Map<string, string> | undefined;
  let isBearer = false;
  schemeOrParameter.lastIndex = 0;
  for (let found = schemeOrParameter.exec(text); found !== null; found = schemeOrParameter.exec(text)) {
    const [, name = "", quoted, plain] = found;
    const value = quoted?.replaceAll(/\\(.)/g, "$1") ?? plain;
    if (value === undefined) {
      isBearer = params === undefined && name.toLowerCase() === "bearer";
      if (isBearer) params = new Map();
    } else if (isBearer && !params?.has(name.toLowerCase())) params?.set(name.toLowerCase(), value);
  }
  return params;
}
