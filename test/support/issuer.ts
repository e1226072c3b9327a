import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** The claims of a token that is fine; a test changes what it is about. Undefined takes a claim away. */
export type TestClaims = { readonly [claim: string]: unknown };

/** An issuer that lives in a test: real keys and real tokens, without a socket. */
export interface TestIssuer {
  readonly url: string;
  /** Requests for its keys so far. */
  readonly keyFetches: () => number;
  /** Whether it can be reached. */
  isDown: boolean;
  /** More members of its metadata, or other ones. */
  metadata: { [member: string]: unknown };
  /** Answers for it; everything else is not found. */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** A key of its own, published or not, by its id. */
  addKey(kid: string, options?: { readonly alg?: string; readonly isPublished?: boolean }): Promise<JWK>;
  removeKey(kid: string): void;
  /** A token with the claims that are given on top of the usual ones. */
  sign(claims?: TestClaims, header?: { readonly [member: string]: unknown }): Promise<string>;
}

interface TestIssuerOptions {
  readonly url?: string;
  readonly audience?: string;
  /** Seconds since the epoch. */
  readonly now?: () => number;
}

export async function createTestIssuer(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const { url = "https://id.example.com/realms/corp", audience = "https://mcp.example.com/mcp" } = options;
  const { now = () => Math.floor(Date.now() / 1000) } = options;
  type Pair = Awaited<ReturnType<typeof generateKeyPair>>;
  const pairs = new Map<string, { readonly privateKey: Pair["privateKey"]; readonly alg: string }>();
  const published = new Map<string, JWK>();
  let fetches = 0;
  const keysUrl = `${url}/keys`;
  const { origin, pathname } = new URL(url);
  const metadataUrl = `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, "")}`;
  const issuer: TestIssuer = {
    url,
    keyFetches: () => fetches,
    isDown: false,
    metadata: {},
    fetch: async (asked) => {
      if (issuer.isDown) throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });
      if (asked === metadataUrl) return Response.json({ issuer: url, jwks_uri: keysUrl, ...issuer.metadata });
      if (asked !== keysUrl) return new Response("", { status: 404 });
      fetches++;
      return Response.json({ keys: [...published.values()] });
    },
    addKey: async (kid, { alg = "ES256", isPublished = true } = {}) => {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
      pairs.set(kid, { privateKey, alg });
      const jwk = { ...(await exportJWK(publicKey)), kid, alg, use: "sig" };
      if (isPublished) published.set(kid, jwk);
      return jwk;
    },
    removeKey: (kid) => void published.delete(kid),
    sign: async (claims = {}, header = {}) => {
      const kid = typeof header["kid"] === "string" && pairs.has(header["kid"]) ? header["kid"] : "one";
      const { privateKey, alg } = pairs.get(kid)!;
      const usual = {
        iss: url,
        sub: "alice",
        aud: audience,
        exp: now() + 3600,
        iat: now(),
        scope: "mcp:use",
      };
      const all = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined);
      return new SignJWT(Object.fromEntries(all))
        .setProtectedHeader({ alg, kid, typ: "at+jwt", ...header })
        .sign(privateKey);
    },
  };
  await issuer.addKey("one");
  return issuer;
}
