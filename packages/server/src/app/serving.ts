import { createSeal, type Seal, type Server } from "@junctor/core/mcp";
import type { Provider } from "@junctor/core/provider";
import {
  anybody,
  type Authenticate,
  type FetchHandler,
  type HttpOptions,
  type NodeHandler,
  toCaller,
} from "../http/index.ts";
import { createServer } from "../wire/index.ts";
import { listenHttp, loadFetch, loadNode, serveStdio } from "./transports.ts";
import type { AppOptions, Serving } from "./types.ts";

export function createServing(provider: Provider, options: AppOptions<undefined>): Serving {
  const {
    user,
    onError,
    http = {},
    secret,
    server: limits,
    cacheHints: _,
    tasks: __,
    skills: ___,
    ...info
  } = options;
  let env: unknown;
  let seal: Seal | undefined;
  let server: Server | undefined;
  let fetching: Promise<FetchHandler> | undefined;
  let serving: Promise<NodeHandler> | undefined;
  const lazySeal: Seal = {
    seal: (...given) => (seal ??= sealOf(secret, env)).seal(...given),
    open: (...given) => (seal ??= sealOf(secret, env)).open(...given),
  };
  const authenticate = user as Authenticate | undefined;
  const toHttpOptions = (): HttpOptions => ({
    path: "*",
    ...(authenticate === undefined ? {} : { authenticate }),
    ...(authenticate !== undefined || isHostedByName() ? { allowedHosts: ["*"] } : {}),
    ...http,
    seal: lazySeal,
  });
  const serverOf = (): Server =>
    (server ??= createServer(provider, info, {
      ...limits,
      seal: lazySeal,
      ...(onError === undefined ? {} : { onError }),
    }));
  return {
    get server() {
      return serverOf();
    },
    fetch: async (request, given) => {
      env ??= given;
      fetching ??= loadFetch().then((toFetchHandler) => toFetchHandler(serverOf(), toHttpOptions()));
      return (await fetching)(request);
    },
    node: async (...given) => {
      serving ??= loadNode().then((toNodeHandler) => toNodeHandler(serverOf(), toHttpOptions()));
      return (await serving)(...given);
    },
    listen: (listening = {}) =>
      listenHttp(serverOf(), {
        ...http,
        ...listening,
        ...(authenticate === undefined ? {} : { authenticate }),
        seal: lazySeal,
      }),
    stdio: async () => {
      const known = await authenticate?.(() => undefined);
      const identity = toCaller(known);
      if (authenticate !== undefined && identity === undefined && known !== anybody)
        throw new TypeError("app.stdio: `user` found nobody; write bearer(find, { stdio: user })");
      await serveStdio(serverOf(), identity === undefined ? {} : { caller: identity.name, identity });
    },
  };
}

/** The seal of an app. Without a secret of its own, the app uses that of the environment. */
function sealOf(secret: AppOptions<undefined>["secret"], env: unknown): Seal {
  if (secret !== undefined) return createSeal({ secrets: [secret].flat() });
  const found =
    secretIn(env) ?? secretIn((globalThis as { readonly process?: { readonly env?: unknown } }).process?.env);
  return createSeal(found === undefined ? {} : { secret: found });
}

function secretIn(env: unknown): string | undefined {
  const secret = (env as { readonly JUNCTOR_SECRET?: unknown } | null | undefined)?.JUNCTOR_SECRET;
  return typeof secret === "string" ? secret : undefined;
}

/** Whether requests reach us by a host name of the platform. Then DNS rebinding is impossible. */
function isHostedByName(): boolean {
  const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } };
  return navigator?.userAgent === "Cloudflare-Workers";
}
