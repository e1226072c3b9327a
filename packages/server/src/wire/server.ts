import { type Awaitable, tryThen, systemClock, type Clock, type CallerLimits } from "@junctor/core/async";
import { RpcError, rpcCodes } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Caller,
  type Era,
  extensionIds,
  type Extensions,
  type Method,
  methods,
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
  stringParam,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import type { CallerInfo, Provider } from "@junctor/core/provider";
import type { Request } from "@junctor/core/rpc";
import { createMethods, ifServed, toRpcError, type UnknownTool } from "./methods.ts";
import { createContext, createFinish, empty, type Finish, type Serve } from "./served.ts";
import { createListenLimits, type ListenLimits, Subscriptions } from "./subscriptions.ts";

/** How the server identifies itself. */
export interface ServerInfo extends Implementation {
  /** How to use this server, for the model. */
  readonly instructions?: string | ((caller: string | undefined, identity?: Caller) => string | undefined);
}

/** How a server answers: eras, pages of lists, limits, and how state that clients carry is sealed. */
export interface ServerOptions {
  /** Which eras are served; both by default. */
  readonly serves?: "both" | "legacy" | "modern";
  /** How a call of an unknown tool is answered. */
  readonly unknownTool?: UnknownTool;
  /** The code for input that is not JSON: `-32700` by the protocol, or `-32600` for clients that expect it. */
  readonly malformedJson?: -32700 | -32600;
  /** `always` reports progress also to callers without a token, under a token of the server. */
  readonly progress?: "on_request" | "always";
  /** The most items on a page of a list. */
  readonly pageSize?: number;
  /** Seals what callers carry between rounds. Share its secret between replicas. */
  readonly seal?: Seal;
  /** How long a caller may take to come back with answers; 10 minutes. */
  readonly stateTtlMs?: number;
  /** The most rounds of questions in one call of a legacy client; 8. */
  readonly maxRounds?: number;
  /** How long a legacy client may take to answer a question; 10 minutes. */
  readonly askTimeoutMs?: number;
  /** The most streams of changes that are open at once; 16,384. */
  readonly maxListens?: number;
  /** The most streams, subscriptions and completions of one caller; see {@link CallerLimits}. */
  readonly perCaller?: Pick<CallerLimits, "streams" | "subscriptions" | "completionsPerMinute">;
  /** Streams, subscriptions and completions counted together with those of other servers, instead of `maxListens` and `perCaller`. */
  readonly listenLimits?: ListenLimits;
  /** For gateways: results of modern servers are passed on unchanged, with their own server info. */
  readonly passesOn?: boolean;
  /** The clock that times are measured by; the system's by default. */
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
export function createServer(provider: Provider, info: ServerInfo, options: ServerOptions = {}): Server {
  assertServable(provider, info, options);
  const { serves = "both", clock = systemClock, malformedJson = rpcCodes["rpc.parse"] } = options;
  const { instructions: _, ...serverInfo } = info;
  const { listenLimits = createListenLimits(options.perCaller, options.maxListens, clock) } = options;
  const seal = options.seal ?? createSeal({ now: () => clock.now() });
  const finish = createFinish(serverInfo, options.passesOn);
  const subscriptions = new Subscriptions(provider, listenLimits, seal);
  const { known, other } = createMethods(provider, {
    finish,
    pageSize: options.pageSize ?? 1000,
    unknownTool: options.unknownTool ?? "invalid_params",
    takeCompletion: listenLimits.takeCompletion,
    onError: options.onError ?? writeError,
    interaction: {
      seal,
      clock,
      stateTtlMs: options.stateTtlMs ?? 10 * 60_000,
      maxRounds: options.maxRounds ?? 8,
      askTimeoutMs: options.askTimeoutMs ?? 10 * 60_000,
    },
  });
  const own = createOwnMethods(provider, info, finish, subscriptions);
  const table = toTable([
    ...known,
    ...Object.entries(own).map(([name, serve]) => [rowOf(name), serve] as const),
  ]);
  return {
    serves,
    parseErrorCode: malformedJson,
    handle: createHandle(
      provider,
      options,
      (request, { era }) => table[era.kind].get(request.method) ?? other,
    ),
    attach: (session, announce, caller) => subscriptions.attach(session, announce, caller),
    drain: () => subscriptions.drain(),
  };
}

/** Serves requests, each by its method. Errors become error responses, and are reported as the options say. */
function createHandle(
  provider: Provider,
  options: ServerOptions,
  methodFor: (request: Request, wire: WireContext) => Serve,
): Server["handle"] {
  const { unknownTool = "invalid_params", observer, onError = writeError } = options;
  const mintsTokens = options.progress === "always";
  return (request, wire) => {
    const method = methodFor(request, wire);
    const observation = observer?.began(request, wire);
    const fail = (error: unknown): never => {
      const rpcError = toRpcError(error, wire.era, unknownTool, (detail) => {
        if (!wire.cancellation.isAborted) onError(detail, request.method);
      });
      observation?.failed(error);
      observation?.ended(undefined, rpcError);
      throw rpcError;
    };
    if (observation !== undefined) wire.observation = observation;
    const context = createContext(request, wire, provider, mintsTokens);
    const serve = (): Awaitable<RawJson> => method({ request, params: request.params, wire, context });
    if (observation === undefined) return tryThen(serve, written, fail);
    const end = (result: RawJson): RawJson => {
      void result.written;
      observation.ended(result);
      return result;
    };
    return tryThen(serve, end, fail);
  };
}

/** The methods that need nothing from the provider but its offers and changes. */
function createOwnMethods(
  provider: Provider,
  { instructions: textOrFunction, ...serverInfo }: ServerInfo,
  finish: Finish,
  subscriptions: Subscriptions,
): { readonly [method: string]: Serve } {
  const instructions = typeof textOrFunction === "function" ? textOrFunction : () => textOrFunction;
  // Instructions that depend on the caller must not be cached for others.
  const cacheScope = typeof textOrFunction === "function" ? "private" : "public";
  return {
    initialize: ({ params, wire, context }) => {
      const handshake = parseInitialize(params);
      wire.beginSession?.(handshake);
      const offered = capabilitiesFor(provider, context, wire);
      const text = instructions(wire.caller, wire.identity);
      return toInitializeResult(handshake.revision, offered, serverInfo, text);
    },
    ping: () => empty,
    "logging/setLevel": setLevel,
    "server/discover": ({ wire, context }) => {
      const text = instructions(wire.caller, wire.identity);
      const result = {
        supportedVersions: modernRevisions,
        capabilities: capabilitiesFor(provider, context, wire),
        ...(text === undefined ? {} : { instructions: text }),
      };
      return finish(RawJson.fromValue(result), wire.era, { ttlMs: 0, cacheScope });
    },
    "subscriptions/listen": async (served) => finish(await subscriptions.listen(served), served.wire.era),
    "resources/subscribe": ifServed(provider, "resources/subscribe", (served) =>
      subscriptions.subscribe(served),
    ),
    "resources/unsubscribe": ifServed(provider, "resources/unsubscribe", (served) =>
      subscriptions.unsubscribe(served),
    ),
  };
}

/** Checks at run time what the compiler checks. Throws an error that says what to write. */
function assertServable(provider: Provider, info: ServerInfo, options: ServerOptions): void {
  const { list, call, offers } = (provider ?? {}) as Partial<Provider>;
  if ([list, call, offers].some((member) => typeof member !== "function"))
    throw new TypeError(
      "createServer(provider, info): the provider must have list, call and offers; createRegistry() makes one",
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

/** Serialises a result now: a value that JSON cannot hold must fail while an error can still be answered. */
function written(result: RawJson): RawJson {
  void result.written;
  return result;
}

function rowOf(name: string): Method {
  const row = methods.get(name);
  if (row === undefined) throw new TypeError(`The table of methods has no ${name}`);
  return row;
}

type Table = { readonly [Kind in Era["kind"]]: ReadonlyMap<string, Serve> };

/** The methods of each era. A method of the other era is as unknown as one that does not exist. */
function toTable(served: readonly (readonly [row: Method, serve: Serve])[]): Table {
  const ofEra = (kind: Era["kind"]): ReadonlyMap<string, Serve> =>
    new Map(
      served.flatMap(([{ method, era }, serve]) => (era === "both" || era === kind ? [[method, serve]] : [])),
    );
  return { modern: ofEra("modern"), legacy: ofEra("legacy") };
}

/** The capabilities that the server declares to one caller: what its provider offers, and `logging`. */
function capabilitiesFor(
  provider: Provider,
  caller: CallerInfo,
  { era }: Pick<WireContext, "era">,
): ServerCapabilities {
  const offers = provider.offers(caller);
  const listChanged = provider.onChange === undefined ? {} : { listChanged: true };
  const subscribe = offers.serves("resources/subscribe") ? { subscribe: true } : {};
  const { [extensionIds.tasks]: tasks, ...others } = offers.extensions ?? {};
  // Tasks of 2025-11-25 are another protocol under the same name, so legacy callers are not offered these.
  const extensions: Extensions =
    tasks === undefined || era.kind === "legacy" ? others : { ...others, [extensionIds.tasks]: tasks };
  return {
    tools: listChanged,
    ...(offers.serves("resources/read") ? { resources: { ...listChanged, ...subscribe } } : {}),
    ...(offers.serves("prompts/get") ? { prompts: listChanged } : {}),
    ...(offers.serves("completion/complete") ? { completions: {} } : {}),
    logging: {},
    ...(Object.keys(extensions).length === 0 ? {} : { extensions }),
  };
}

const setLevel: Serve = ({ params, wire }) => {
  const level = stringParam(params, "level");
  if (!isLogLevel(level))
    throw new RpcError("rpc.invalid_params", `Invalid params: ${JSON.stringify(level)} is not a log level`);
  if (wire.era.kind === "legacy" && wire.era.session !== undefined) wire.era.session.logLevel = level;
  return RawJson.fromText("{}");
};

function writeError(error: unknown, method: string): void {
  console.error(`Serving ${method} failed:`, error);
}
