import { type Clock, systemClock, Repeats } from "@junctor/core/async";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { Authenticate } from "@junctor/server";
import type { IssuerOptions } from "./issuer.ts";
import { digestOf, type RefusedToken, Tokens } from "./tokens.ts";

/** Whose tokens an endpoint accepts, and which endpoint they must be made for. */
export interface AcceptTokensOptions {
  /** The URL that clients know the endpoint by. Tokens must be made for it, unless the issuer has an `audience`. */
  readonly publicUrl: string;
  /** By name: the subject `1` of the issuer `corp` becomes the caller `corp:1`. */
  readonly issuers: { readonly [alias: string]: IssuerOptions };
  /** The path of the endpoint at the listener; `/mcp`. */
  readonly path?: string;
  /** Instead of the global one. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
  /** Called for each token that is refused. */
  readonly onRefused?: (refused: RefusedToken) => void;
  /** Called, at a limited rate, when an issuer cannot be asked; the default writes to the standard error stream. */
  readonly onWarning?: (text: string) => void;
}

const optionKeys: KeysOf<AcceptTokensOptions> = keys(
  "publicUrl issuers path fetch clock onRefused onWarning",
);

/**
 * Makes an endpoint an OAuth resource server: callers come in with access tokens of the issuers, others are told where to get
 * one. For the options `authenticate` and `publicUrl` of `listenHttp` and the like. A tool finds its caller in `context.identity`.
 *
 * @example
 * const publicUrl = "https://mcp.example.com/mcp";
 * const issuers = { corp: { issuer: "https://id.example.com/realms/corp", scopes: ["mcp:use"] } };
 * await listenHttp(server, { publicUrl, authenticate: acceptTokens({ publicUrl, issuers }) });
 */
export function acceptTokens(options: AcceptTokensOptions): Authenticate {
  assertKnownKeys("acceptTokens", options, optionKeys);
  const { path = "/mcp", fetch = globalThis.fetch, clock = systemClock, onRefused = () => {} } = options;
  const { onWarning = (text) => console.error(text) } = options;
  const repeats = new Repeats({ clock });
  const tokens = new Tokens({
    ...options,
    path,
    fetch,
    clock,
    onRefused,
    onUnreachable: (alias, error) => {
      const text = `The issuer ${alias} cannot be asked: ${error instanceof Error ? error.message : String(error)}`;
      if (repeats.note(text) !== undefined) onWarning(text);
    },
  });
  const authenticate: Authenticate = (header, request = { path }) => {
    const token = parseBearer(header("authorization"));
    if (token === undefined) return tokens.answers.challenge(request.path);
    if (token === "malformed") return tokens.answers.malformed(request.path);
    return tokens.check(token.bearer, digestOf(token.bearer), request);
  };
  return Object.assign(authenticate, {
    documentAt: tokens.resources.documentAt,
    challengeFor: tokens.answers.challengeFor,
  });
}

/** The token of an `Authorization` header, undefined when the header has none, `malformed` when it cannot be read. */
export function parseBearer(
  header: string | undefined,
): { readonly bearer: string } | "malformed" | undefined {
  if (header === undefined || !/^bearer(?: |$)/i.test(header)) return undefined;
  const bearer = /^bearer +([!-~]+) *$/i.exec(header)?.[1];
  return bearer === undefined ? "malformed" : { bearer };
}
