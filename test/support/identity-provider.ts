import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A token of the provider, as far as tests look at it. */
export interface IssuedToken {
  readonly aud?: string;
  readonly scope?: string;
  readonly clientId?: string;
  readonly accountId?: string;
  readonly isExpired: boolean;
}

/** The part of `oidc-provider` that is used here; the package has no types. */
interface OidcProvider {
  readonly AccessToken: TokenFinder;
  readonly ClientCredentials: TokenFinder;
  readonly Grant: new (facts: object) => GrantDraft;
  callback(): (request: IncomingMessage, response: ServerResponse) => void;
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  on(event: string, listener: (...args: readonly unknown[]) => void): void;
}

interface TokenFinder {
  find(value: string): Promise<IssuedToken | undefined>;
}

interface GrantDraft {
  addOIDCScope(scope: string): void;
  addResourceScope(resource: string, scope: string): void;
  save(): Promise<string>;
}

interface Interaction {
  readonly params: { readonly [name: string]: string };
  readonly session?: { readonly accountId: string };
}

export interface IdentityProviderOptions {
  /** Who signs in where a page is opened; `alice`. */
  readonly account?: string;
  /** How long access tokens last, in seconds; 3600. */
  readonly accessSeconds?: number;
  /** Clients that are known from the start. */
  readonly clients?: readonly object[];
  /** False: it registers no clients. */
  readonly registers?: boolean;
  /** The scopes of every server. */
  readonly scopes?: string;
  /** The form of access tokens; `opaque`. */
  readonly tokens?: "opaque" | "jwt";
  /** The claim `groups` of every token. */
  readonly groups?: readonly string[];
  readonly port?: number;
  /** Called before an answer of the token endpoint leaves. */
  readonly beforeTokenAnswer?: (grant: string) => Promise<void>;
}

/** A real authorization server on this machine. Its user agrees to everything. */
export interface IdentityProvider extends AsyncDisposable {
  readonly issuer: string;
  /** The grants of the requests to its token endpoint, in order, with what became of them. */
  readonly tokenRequests: { readonly grant: string; status: number }[];
  account: string;
  find(token: string): Promise<IssuedToken | undefined>;
  /** Does what a browser does: opens a page, follows where it leads on this server, and gives the address it leaves for. */
  browse(url: string): Promise<string>;
}

export async function startIdentityProvider(
  options: IdentityProviderOptions = {},
): Promise<IdentityProvider> {
  const { accessSeconds = 3600, clients = [], registers = true, scopes = "read write" } = options;
  const name: string = "oidc-provider";
  const { default: Provider } = (await import(/* @vite-ignore */ name)) as {
    default: new (issuer: string, settings: object) => OidcProvider;
  };
  const tokenRequests: { grant: string; status: number }[] = [];
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const listener = createServer((request, response) => handle(request, response));
  listener.listen(options.port ?? 0, "127.0.0.1");
  await once(listener, "listening");
  const issuer = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const { warn } = console;
  console.warn = () => {}; // It warns that its keys and its memory are for tests.
  const provider = new Provider(issuer, {
    clients,
    scopes: ["openid", "offline_access", ...scopes.split(" ")],
    features: {
      registration: { enabled: registers },
      introspection: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: scopes,
          audience: resource,
          accessTokenFormat: options.tokens ?? "opaque",
          ...(options.tokens === "jwt" ? { jwt: { sign: { alg: "RS256" } } } : {}),
          accessTokenTTL: accessSeconds,
        }),
        useGrantedResource: () => true,
      },
    },
    clientDefaults: { grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] },
    rotateRefreshToken: true,
    pkce: { required: () => true },
    ttl: { AccessToken: accessSeconds, ClientCredentials: accessSeconds, RefreshToken: 86_400 },
    issueRefreshToken: () => true,
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: () => (options.groups === undefined ? undefined : { groups: options.groups }),
    cookies: { keys: ["a key for tests"] },
  });
  console.warn = warn;
  const serve = provider.callback();
  const idp: { account: string } = { account: options.account ?? "alice" };

  /** Answers the pages on which a user signs in and agrees. */
  const interact = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { params } = await provider.interactionDetails(request, response);
    const grant = new provider.Grant({ accountId: idp.account, clientId: params["client_id"] });
    grant.addOIDCScope(params["scope"] ?? "");
    if (params["resource"] !== undefined) grant.addResourceScope(params["resource"], params["scope"] ?? "");
    const grantId = await grant.save();
    await provider.interactionFinished(request, response, {
      login: { accountId: idp.account },
      consent: { grantId },
    });
  };
  handle = (request, response) => {
    if (request.url?.startsWith("/interaction/") === true) return void interact(request, response);
    if (request.url === "/token") {
      const record = { grant: "", status: 0 };
      tokenRequests.push(record);
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        record.grant = new URLSearchParams(Buffer.concat(chunks).toString()).get("grant_type") ?? "";
      });
      const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
      response.end = ((...args: unknown[]) => {
        record.status = response.statusCode;
        void (options.beforeTokenAnswer?.(record.grant) ?? Promise.resolve()).then(() => end(...args));
        return response;
      }) as typeof response.end;
    }
    serve(request, response);
  };
  return Object.assign(idp, {
    issuer,
    tokenRequests,
    find: async (token: string) =>
      (await provider.AccessToken.find(token)) ?? (await provider.ClientCredentials.find(token)),
    browse: (url: string) => browse(url, issuer),
    [Symbol.asyncDispose]: async () => {
      listener.closeAllConnections();
      listener.close();
      await once(listener, "close");
    },
  });
}

async function browse(start: string, issuer: string): Promise<string> {
  const cookies = new Map<string, string>();
  let url = start;
  for (let steps = 0; steps < 10; steps++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const { status, headers } = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const each of headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(each) ?? [];
      cookies.set(name, value);
    }
    const location = headers.get("location");
    if (location === null) throw new Error(`The page answered ${status}`);
    url = new URL(location, url).href;
    if (!url.startsWith(issuer)) return url;
  }
  throw new Error("The pages lead nowhere");
}
