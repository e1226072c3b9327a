import { andThen, type Awaitable } from "../async/awaitable.ts";
import { type Clock, systemClock } from "../async/clock.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { ConfigError } from "../errors/config-error.ts";
import { newestModernRevision } from "../mcp/revision.ts";
import { createSeal, type Seal } from "../mcp/seal.ts";
import type { Server } from "../mcp/server.ts";
import type { Implementation, Tool } from "../mcp/types.ts";
import type { OwnerOf } from "../middleware/audit-log.ts";
import { createServer } from "../server/server.ts";
import { createChangeSource } from "../tools/changes.ts";
import type { CallContext } from "../tools/context.ts";
import { withMiddleware } from "../tools/middleware.ts";
import type { Naming } from "../tools/namespace.ts";
import type { Provider } from "../tools/provider.ts";
import { anybody, type Authenticate } from "../transports/http/handler.ts";
import { createAccess, type Unnamed } from "./access.ts";
import { Parking, type ParkingOptions } from "./bridge/parking.ts";
import { Catalog } from "./catalog/catalog.ts";
import type { Collision } from "./catalog/merge.ts";
import type { GatewayConfig } from "./config/config.ts";
import { parseConfigValue } from "./config/parse-config.ts";
import { readSmallFile } from "./config/read-config.ts";
import { Fleet } from "./fleet.ts";
import { createGatewayProvider } from "./gateway-provider.ts";
import { joinInstructions } from "./instructions.ts";
import { type GatewayLog, silentLog } from "./log.ts";
import { createMiddlewareChain } from "./middleware-chain.ts";
import { createHide, createSafeLog, hideInData } from "./safe-log.ts";
import { describeStatus, type ServerStatus } from "./status.ts";

export interface GatewayOptions {
  /** Providers of this process, by name, as if they were servers; their tools keep their names, up to 64 characters, unless the config says otherwise. */
  readonly local?: { readonly [name: string]: Provider };
  readonly log?: GatewayLog;
  /** Seals what callers carry between rounds. Share its secret between replicas. */
  readonly seal?: Seal;
  /** What callers without a name may do where the config has keys: `trusted` is for stdio, where there are no keys. */
  readonly unnamed?: Unnamed;
  /** Who the gateway says it is. */
  readonly info?: Implementation;
  /** How long the first lists are waited for; 2 s. */
  readonly readyMs?: number;
  readonly parking?: Omit<ParkingOptions, "clock">;
  /** Where `${VAR}` comes from; the environment of this process. */
  readonly env?: { readonly [name: string]: string | undefined };
  /** What relative paths in the config are relative to; the current folder. */
  readonly folder?: string;
  /** The file the config came from, for messages. */
  readonly file?: string;
  readonly clock?: Clock;
}

/**
 * Servers behind one endpoint. Disposing it gives up parked calls, ends every server and, with it, every process it
 * started.
 */
export interface Gateway extends AsyncDisposable {
  /** For `listenHttp`, `serveStdio` and the like. */
  readonly server: Server;
  /** The same as a provider, to compose or to wrap. */
  readonly provider: Provider;
  /** Tells callers by their keys, for `listenHttp`; undefined when the config has no keys. */
  readonly authenticate: Authenticate | undefined;
  /** Settles when every server that starts with the gateway is listed or has failed once, at the latest after `readyMs`. */
  readonly ready: Promise<void>;
  /** How every server is. */
  status(): readonly ServerStatus[];
  /** How long a server takes to answer a request that gives it no work; undefined when it cannot be asked now. */
  measure(server: string): Promise<number | undefined>;
  /** Names that several servers claim, and who has them. */
  collisions(): readonly Collision[];
  /** Takes another config: only servers that are new, gone or changed are touched. Rejects, and changes nothing, if it is wrong. */
  update(config: object): Promise<void>;
  close(): Promise<void>;
}

/**
 * Puts any number of MCP servers behind one. The config is what stands in the file: `mcpServers` or `servers`, and an
 * optional `junctor` section. Rejects with a `ConfigError` that lists everything that is wrong.
 *
 * @example
 * await using gateway = await createGateway({ mcpServers: { files: { command: "mcp-server-filesystem", args: ["."] } } });
 * await using listener = await listenHttp(gateway.server, { authenticate: gateway.authenticate });
 */
export async function createGateway(config: object, options: GatewayOptions = {}): Promise<Gateway> {
  return startGateway(parse(config, options), options);
}

function parse(
  config: object,
  { env = process.env, folder = process.cwd(), file = "config" }: GatewayOptions,
): GatewayConfig {
  return parseConfigValue(config, { env, folder, file, readText: readSmallFile });
}

/** A gateway whose config was parsed before; it can be given such another. */
export interface RunningGateway extends Gateway {
  /** Like `authenticate`, but always there: it follows the config, and lets anybody in while that has no keys. */
  readonly admit: Authenticate;
  apply(config: GatewayConfig): Promise<void>;
}

/** Starts a gateway from a config that was read and checked. */
export async function startGateway(
  first: GatewayConfig,
  options: GatewayOptions = {},
): Promise<RunningGateway> {
  const { clock = systemClock, readyMs = 2000, file = "config" } = options;
  const { local = {}, unnamed = "refused", seal = createSeal({ now: () => clock.now() }) } = options;
  let config = first;
  const hide = createHide(() => config.secrets);
  const log = createSafeLog(options.log ?? silentLog, hide);
  const parking = new Parking({ clock, ...options.parking });
  const changes = createChangeSource();
  const catalog = new Catalog(toNaming(first), ({ key, owner, others }) => {
    const text = `${key} is offered by several servers; ${owner} has it: rename or hide the others`;
    log.warn({ name: key, owner, others }, text);
  });
  let access = createAccess(config, catalog, unnamed);
  const ownerOf: OwnerOf = (tool, context) => access.ownerOf(tool, context);
  let chain = await createMiddlewareChain(config, { file, clock, log, ownerOf, hide });
  const fleet = new Fleet({ catalog, parking, local, log, hide, clock, onChange: changes.report });

  let isReady = false;
  const ready = fleet.have(config.servers, readyMs).then(() => {
    isReady = true;
    catalog.settle();
    catalog.outdated();
  });
  const base = createGatewayProvider({
    catalog,
    upstreams: fleet.upstreams,
    changes,
    clock,
    hide,
    viewFor: (context) => access.viewFor(context),
    untilReady: () => (isReady ? undefined : ready),
    firstListMs: readyMs,
  });
  let guarded = withMiddleware(base, chain.middlewares);
  const provider: Provider = {
    ...base,
    get cacheHints() {
      // Each key may see something else, so nobody's list is for a cache that serves others.
      const { ttlMs, cacheScope } = guarded.cacheHints ?? { ttlMs: 0, cacheScope: "private" };
      return { ttlMs, cacheScope: config.keys.length > 0 ? "private" : cacheScope };
    },
    listMeta: (list) => guarded.listMeta?.(list),
    listTools: (context) => guarded.listTools(context),
    toolNamed: (name, context) => toolNamed(guarded, name, context),
    callTool: (call, context) => guarded.callTool(call, context),
  };
  const instructions = (caller: string | undefined): string | undefined => {
    const view = access.viewFor({ caller, capabilities: {}, revision: newestModernRevision });
    return joinInstructions([...fleet.upstreams.values()].filter((upstream) => view.knows(upstream.config)));
  };
  const info = { ...(options.info ?? { name: "junctor", title: "Junctor", version: "0.1.0" }), instructions };
  const onError = (error: unknown, method: string): void =>
    log.error({ method, error: String(error) }, "serving a request failed");
  const inner = createServer(provider, info, { seal, clock, onError, stateTtlMs, passesOn: true });
  const revoked = new Set<(caller: string | undefined) => void>();
  const server: Server = {
    ...inner,
    attach: (session, announce, caller) => {
      const detach = inner.attach(session, announce, caller);
      return () => {
        detach();
        fleet.sessionEnded(session);
      };
    },
    onRevoked: (listener) => {
      const heard: typeof listener = (caller) => listener(caller);
      revoked.add(heard);
      return () => void revoked.delete(heard);
    },
  };

  let closing: Promise<void> | undefined;
  const apply = async (next: GatewayConfig): Promise<void> => {
    // Whatever can fail comes before anything is changed.
    const nextChain = await createMiddlewareChain(next, { file, clock, log, ownerOf, hide, earlier: chain });
    if (closing !== undefined) {
      await nextChain[Symbol.asyncDispose]();
      throw new ClosedError("not_sent", "the gateway is closed");
    }
    const lastChain = chain;
    // What was secret stays so: it may still turn up in what an old server says.
    config = { ...next, secrets: [...new Set([...next.secrets, ...config.secrets])] };
    chain = nextChain;
    catalog.naming = toNaming(next);
    const lastAccess = access;
    access = createAccess(next, catalog, unnamed);
    for (const caller of access.revokedSince(lastAccess)) for (const tell of revoked) tell(caller);
    guarded = withMiddleware(base, nextChain.middlewares);
    const had = fleet.have(next.servers, readyMs);
    for (const kind of ["tools", "prompts", "resources"] as const) changes.report({ kind });
    await Promise.all([had, lastChain[Symbol.asyncDispose]()]);
  };
  const stop = async (): Promise<void> => {
    await parking.close();
    await fleet[Symbol.asyncDispose]();
    await chain[Symbol.asyncDispose]();
  };
  const close = (): Promise<void> => (closing ??= stop());
  return {
    server,
    provider,
    get authenticate() {
      return access.authenticate === undefined
        ? undefined
        : (header: Parameters<Authenticate>[0]) => access.authenticate?.(header);
    },
    admit: (header) => (access.authenticate === undefined ? anybody : access.authenticate(header)),
    ready,
    status: () =>
      hideInData(
        catalog.sources.map((source) => describeStatus(source, clock.now())),
        hide,
      ),
    measure: async (name) => fleet.upstreams.get(name)?.measure(),
    collisions: () => catalog.snapshotFor("").collisions,
    update: async (given) => {
      const next = parse(given, options);
      if ((next.keys.length === 0) !== (config.keys.length === 0)) throw keysInOrOut(file);
      await apply(next);
      await fleet.untilRetired();
    },
    apply,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * How long what callers carry is good: much longer than a call is parked. A caller that comes back too late must hear that
 * its call had begun, which only a state that still opens can say.
 */
const stateTtlMs = 24 * 60 * 60_000;

function toNaming({ separator }: GatewayConfig): Naming {
  return { separator, maxLength: 64 };
}

/** Whoever listens was told once whether callers are known by keys. */
function keysInOrOut(file: string): ConfigError {
  const message = "cannot be brought in or taken away while the gateway runs: make another gateway";
  return new ConfigError(file, [{ path: "junctor.keys", message }]);
}

/** A middleware may filter, and then only its list says what there is. */
function toolNamed(provider: Provider, name: string, context: CallContext): Awaitable<Tool | undefined> {
  if (provider.toolNamed !== undefined) return provider.toolNamed(name, context);
  return andThen(provider.listTools(context), (tools) => tools.find((tool) => tool.name === name));
}
