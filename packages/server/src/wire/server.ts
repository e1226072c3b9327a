import {
  andThen,
  type Awaitable,
  settled,
  tryThen,
  systemClock,
  type Clock,
  type CallerLimits,
} from "@junctor/core/async";
import { RpcError, rpcCodes } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Caller,
  extensionIds,
  type Extensions,
  modernRevisions,
  createSeal,
  type Seal,
  type Observer,
  type Server,
  type WireContext,
  parseInitialize,
  toInitializeResult,
  type Implementation,
  isImplementation,
  isLogLevel,
  type ServerCapabilities,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { MethodProvider, OldProvider } from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import { createListenLimits, type ListenLimits } from "./listen-limits.ts";
import { createMethods } from "./methods.ts";
import {
  createContext,
  createFinish,
  empty,
  type Finish,
  type Method,
  type MethodTable,
  stringParam,
} from "./served.ts";
import { createSubscriptions } from "./subscriptions.ts";
import { toRpcError, type UnknownTool } from "./to-rpc-error.ts";

/** Who the server says it is. */
export interface ServerInfo extends Implementation {
  /** How to use this server, for the model. */
  readonly instructions?: string | ((caller: string | undefined, identity?: Caller) => string | undefined);
}

export interface ServerOptions {
  /** Which eras are served; both by default. */
  readonly serves?: "both" | "legacy" | "modern";
  /** How a call of a tool that is not there is answered. */
  readonly unknownTool?: UnknownTool;
  /** The code for input that is not JSON: `-32700` by the protocol, `-32600` for clients that expect that. */
  readonly malformedJson?: -32700 | -32600;
  /** `always` reports progress also to callers that sent no token, under one of the server's own. */
  readonly progress?: "on_request" | "always";
  /** Most items on a page of a list. */
  readonly pageSize?: number;
  /** Seals what callers carry between rounds. Share its secret between replicas. */
  readonly seal?: Seal;
  readonly stateTtlMs?: number;
  readonly maxRounds?: number;
  /** How long a legacy client may take to answer a question; 10 minutes. */
  readonly askTimeoutMs?: number;
  readonly maxListens?: number;
  /** Most streams and subscriptions that one caller may hold, and completions that it may ask for; see {@link CallerLimits}. */
  readonly perCaller?: Pick<CallerLimits, "streams" | "subscriptions" | "completionsPerMinute">;
  /** Streams, subscriptions and completions counted together with those of other servers, instead of `maxListens` and `perCaller`. */
  readonly listenLimits?: ListenLimits;
  /** For gateways: results of modern servers leave as they came, under their own name. */
  readonly passesOn?: boolean;
  readonly clock?: Clock;
  /** Sees every request; see {@link Observer}. */
  readonly observer?: Observer | undefined;
  /** Called for every error that was not meant for the caller; the default writes it to the standard error stream. */
  readonly onError?: (error: unknown, method: string) => void;
}

const serverOptionKeys: KeysOf<ServerOptions> = {
  ...keys("serves unknownTool malformedJson progress pageSize seal stateTtlMs maxRounds askTimeoutMs"),
  ...keys("maxListens perCaller listenLimits passesOn clock observer onError"),
};

/**
 * Makes a provider ready for the wire, in every revision of the protocol at once. The server holds no state of its
 * callers; one serves any number of channels.
 *
 * @example
 * await serveStdio(createServer(registry, { name: "weather", version: "1.0.0" }));
 */
export function createServer(provider: OldProvider, info: ServerInfo, options: ServerOptions = {}): Server {
  assertServable(provider, info, options);
  const { serves = "both", unknownTool = "invalid_params", observer, onError = writeError } = options;
  const { instructions: given, ...serverInfo } = info;
  const instructions = typeof given === "function" ? given : () => given;
  // Instructions that depend on the caller must not be cached for others.
  const cacheScope = typeof given === "function" ? "private" : "public";
  const finish = createFinish(serverInfo, options.passesOn);
  const capabilities = capabilitiesOf(provider);
  const clock = options.clock ?? systemClock;
  const { listenLimits = createListenLimits(options.perCaller, options.maxListens, clock) } = options;
  const seal = options.seal ?? createSeal({ now: () => clock.now() });
  const subscriptions = createSubscriptions(provider, capabilities, { ...listenLimits, seal });
  const methods = createMethods(provider, {
    finish,
    pageSize: options.pageSize ?? 1000,
    unknownTool,
    takeCompletion: listenLimits.takeCompletion,
    onError,
    interaction: {
      seal,
      clock,
      stateTtlMs: options.stateTtlMs ?? 10 * 60_000,
      maxRounds: options.maxRounds ?? 8,
      askTimeoutMs: options.askTimeoutMs ?? 10 * 60_000,
    },
  });
  const contexts = { mintsTokens: options.progress === "always", hasTasks: provider.tasks !== undefined };

  const initialize: Method = ({ params, wire }) => {
    const handshake = parseInitialize(params);
    wire.beginSession?.(handshake);
    const offered = withOffered(capabilities, provider, wire);
    const text = instructions(wire.caller, wire.identity);
    return toInitializeResult(handshake.revision, offered, serverInfo, text);
  };

  const discover: Method = ({ wire }) => {
    const text = instructions(wire.caller, wire.identity);
    const result = {
      supportedVersions: modernRevisions,
      capabilities: withOffered(capabilities, provider, wire),
      ...(text === undefined ? {} : { instructions: text }),
    };
    return finish(RawJson.fromValue(result), wire.era, { ttlMs: 0, cacheScope });
  };

  const listen: Method = async (served) => finish(await subscriptions.listen(served), served.wire.era);

  const other = provider.methods && serveOther(provider.methods, finish);
  const table = toTable({
    modern: { "server/discover": discover, "subscriptions/listen": listen, ...methods.modern },
    legacy: {
      initialize,
      ping: () => RawJson.fromText("{}"),
      "logging/setLevel": setLevel,
      ...methods.legacy,
      ...subscriptions.legacy,
    },
  });

  return {
    serves,
    parseErrorCode: options.malformedJson ?? rpcCodes["rpc.parse"],
    handle: (request: Request, wire: WireContext) => {
      const method = table[wire.era.kind].get(request.method) ?? other;
      const observation = observer?.began(request, wire);
      const fail = (error: unknown): never => {
        const rpcError = toRpcError(error, wire.era, unknownTool, (detail) => {
          if (!wire.cancellation.isAborted) onError(detail, request.method);
        });
        observation?.failed(error);
        observation?.ended(undefined, rpcError);
        throw rpcError;
      };
      if (method === undefined) {
        return fail(new RpcError("rpc.method_not_found", `Method not found: ${request.method}`));
      }
      if (observation !== undefined) wire.observation = observation;
      const context = createContext(request, wire, contexts);
      const serve = (): Awaitable<RawJson> => method({ request, params: request.params, wire, context });
      if (observation === undefined) return tryThen(serve, written, fail);
      const end = (result: RawJson): RawJson => {
        void result.written;
        observation.ended(result);
        return result;
      };
      return tryThen(serve, end, fail);
    },
    attach: subscriptions.attach,
    drain: subscriptions.drain,
  };
}

/** Throws a `TypeError` for what the compiler refuses too, with what to write. */
function assertServable(provider: OldProvider, info: ServerInfo, options: ServerOptions): void {
  if (typeof provider?.listTools !== "function" || typeof provider.callTool !== "function")
    throw new TypeError(
      "createServer(provider, info): the provider must have listTools and callTool; createRegistry() makes one",
    );
  if (!isImplementation(info))
    throw new TypeError('createServer(provider, info): write { name: "weather", version: "1.0.0" } as info');
  const { instructions } = info;
  if (instructions !== undefined && typeof instructions !== "string" && typeof instructions !== "function")
    throw new TypeError("createServer: instructions must be a text, or a function that gives one");
  assertKnownKeys("createServer", options, serverOptionKeys);
  for (const [key, values] of Object.entries(choices)) {
    const value = options[key as keyof typeof choices];
    if (value !== undefined && !values.includes(value))
      throw new TypeError(
        `createServer: ${key} must be one of ${values.join(", ")}, but is ${String(value)}`,
      );
  }
  for (const key of ["pageSize", "stateTtlMs", "maxRounds", "askTimeoutMs", "maxListens"] as const) {
    const value = options[key];
    if (value !== undefined && !(typeof value === "number" && value >= 1))
      throw new RangeError(`createServer: ${key} must be a number above 0, but is ${String(value)}`);
  }
}

const choices: {
  readonly [Key in "serves" | "unknownTool" | "malformedJson" | "progress"]: readonly unknown[];
} = {
  serves: ["both", "legacy", "modern"],
  unknownTool: ["invalid_params", "method_not_found", "is_error"],
  malformedJson: [-32700, -32600],
  progress: ["on_request", "always"],
};

/** Serves methods that the protocol does not have. */
function serveOther(methods: MethodProvider, finish: Finish): Method {
  return ({ request: { method, params = empty }, wire, context }) => {
    if (!methods.has(method, context))
      throw new RpcError("rpc.method_not_found", `Method not found: ${method}`);
    return andThen(settled(methods.serve(method, params, context)), (result) => finish(result, wire.era));
  };
}

/** Serialises a result now: a value that JSON cannot hold must fail while an error can still be answered. */
function written(result: RawJson): RawJson {
  void result.written;
  return result;
}

function toTable(methods: MethodTable): {
  readonly [Kind in keyof MethodTable]: ReadonlyMap<string, Method>;
} {
  return { modern: new Map(Object.entries(methods.modern)), legacy: new Map(Object.entries(methods.legacy)) };
}

/** The capabilities that the server declares: those of its provider, and `logging`. */
function capabilitiesOf(provider: OldProvider): ServerCapabilities {
  const listChanged = provider.onChange === undefined ? {} : { listChanged: true };
  const { resources, prompts, completion } = provider;
  const subscribe = resources?.watch === undefined ? {} : { subscribe: true };
  return {
    tools: listChanged,
    ...(resources === undefined ? {} : { resources: { ...listChanged, ...subscribe } }),
    ...(prompts === undefined ? {} : { prompts: listChanged }),
    ...(completion === undefined ? {} : { completions: {} }),
    logging: {},
  };
}

/**
 * The capabilities with the extensions that a server offers to one caller, by its era and the facets of the provider: the one
 * place that says so.
 */
function withOffered(
  capabilities: ServerCapabilities,
  provider: OldProvider,
  { era, caller }: Pick<WireContext, "era" | "caller">,
): ServerCapabilities {
  const extensions: Extensions = {
    ...provider.extensionsFor?.(caller),
    ...offeredSkills(provider),
    // Tasks of 2025-11-25 are another protocol under the same name, so legacy callers are not offered these.
    ...(provider.tasks !== undefined && era.kind === "modern" ? { [extensionIds.tasks]: {} } : {}),
  };
  return Object.keys(extensions).length === 0 ? capabilities : { ...capabilities, extensions };
}

/** Files of skills are read as resources, so a server that has no resources cannot serve skills. */
function offeredSkills({ skills, resources }: OldProvider): Extensions {
  if (skills === undefined || resources === undefined) return {};
  return { [extensionIds.skills]: skills.readDirectory === undefined ? {} : { directoryRead: true } };
}

const setLevel: Method = ({ params, wire }) => {
  const level = stringParam(params, "level");
  if (!isLogLevel(level))
    throw new RpcError("rpc.invalid_params", `Invalid params: ${JSON.stringify(level)} is no log level`);
  if (wire.era.kind === "legacy" && wire.era.session !== undefined) wire.era.session.logLevel = level;
  return RawJson.fromText("{}");
};

function writeError(error: unknown, method: string): void {
  console.error(`Serving ${method} failed:`, error);
}
