import { type Clock, settlesWithin, systemClock } from "../async/clock.ts";
import type { Client } from "../client/client.ts";
import { connect, type ConnectOptions } from "../client/connect.ts";
import { createSeal, type Seal } from "../mcp/seal.ts";
import type { Server } from "../mcp/server.ts";
import { createServer } from "../server/server.ts";
import { createChangeSource } from "../tools/changes.ts";
import { withMiddleware } from "../tools/middleware.ts";
import type { Provider } from "../tools/provider.ts";
import { createGuardian } from "../transports/guardian.ts";
import { anybody, type Authenticate } from "../transports/http/handler.ts";
import { createAccess, type Unnamed } from "./access.ts";
import { Parking, type ParkingOptions } from "./bridge/parking.ts";
import { Catalog } from "./catalog/catalog.ts";
import type { Collision } from "./catalog/merge.ts";
import type { GatewayConfig, ServerConfig } from "./config/config.ts";
import { parseConfigValue } from "./config/parse-config.ts";
import { readSmallFile } from "./config/read-config.ts";
import { createGatewayProvider } from "./gateway-provider.ts";
import { joinInstructions } from "./instructions.ts";
import { type GatewayLog, silentLog } from "./log.ts";
import { createMiddlewareChain } from "./middleware-chain.ts";
import { createOpenServer } from "./open-server.ts";
import { describeStatus, type ServerStatus } from "./status.ts";
import { Upstream, type UpstreamChange } from "./upstream/upstream.ts";

export interface GatewayOptions {
  /** Providers of this process, by name, as if they were servers; their tools keep their names unless the config says otherwise. */
  readonly local?: { readonly [name: string]: Provider };
  readonly log?: GatewayLog;
  /** Seals what callers carry between rounds. Share its secret between replicas. */
  readonly seal?: Seal;
  /** What callers without a name may do where the config has keys: `trusted` is for stdio, where there are no keys. */
  readonly unnamed?: Unnamed;
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

/** How long calls of a server that was removed or changed may go on. */
const retireMs = 10_000;

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
  const {
    clock = systemClock,
    log = silentLog,
    readyMs = 2000,
    seal = createSeal(),
    file = "config",
  } = options;
  const { local = {}, unnamed = "refused" } = options;
  const guardian = createGuardian({ onWarning: (text) => log.warn({}, text) });
  const parking = new Parking({ clock, ...options.parking });
  const changes = createChangeSource();
  const upstreams = new Map<string, Upstream>();
  const naming = { separator: first.separator, maxLength: 64 };
  const catalog = new Catalog(naming, ({ key, owner, others }) =>
    log.warn(
      { name: key, owner, others },
      `${key} is offered by several servers; ${owner} has it: rename or hide the others`,
    ),
  );
  let config = first;
  let access = createAccess(config, catalog, unnamed);
  let chain = await createMiddlewareChain(config, file, clock, log);
  let isReady = false;

  const heard = (name: string, change: UpstreamChange): void => {
    if (change.kind === "resource") return changes.report(change);
    catalog.outdated();
    if (change.kind === "health") return logHealth(log, name, change);
    for (const kind of change.changed) changes.report({ kind });
  };
  const create = (server: ServerConfig): Upstream =>
    new Upstream({
      config: server,
      connect: openerOf(server),
      parking,
      clock,
      onChange: (change) => {
        if (upstreams.get(server.name)?.config === server) heard(server.name, change);
      },
    });
  const openerOf = (server: ServerConfig): ((given: ConnectOptions) => Promise<Client>) => {
    const provider = Object.hasOwn(local, server.name) ? local[server.name] : undefined;
    if (provider === undefined) return createOpenServer(server, { log, guardian });
    const inner = createServer(provider, { name: server.name, version: "0.1.0" });
    return (given) => connect({ server: inner }, given);
  };
  const begin = (upstream: Upstream): Promise<void> =>
    upstream.config.start === "lazy" ? Promise.resolve() : upstream.start();

  const place = (servers: readonly ServerConfig[]): readonly Upstream[] => {
    const added = servers.filter((server) => !isSame(upstreams.get(server.name)?.config, server)).map(create);
    for (const upstream of added) upstreams.set(upstream.name, upstream);
    catalog.sources = servers.flatMap(({ name }) => upstreams.get(name) ?? []);
    return added;
  };
  const withLocal = (servers: readonly ServerConfig[]): readonly ServerConfig[] => [
    ...Object.keys(local)
      .filter((name) => !servers.some((server) => server.name === name))
      .map(toLocalConfig),
    ...servers,
  ];

  const base = createGatewayProvider({
    catalog,
    upstreams,
    changes,
    clock,
    viewFor: (context) => access.viewFor(context),
    untilReady: () => (isReady ? undefined : ready),
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
    callTool: (call, context) => guarded.callTool(call, context),
  };

  const started = Promise.all(place(withLocal(config.servers)).map(begin));
  const ready = settlesWithin(started, readyMs, clock).then(() => {
    isReady = true;
    catalog.settle();
    catalog.outdated();
  });
  const instructions = (): string | undefined => joinInstructions(upstreams.values());
  const server = createServer(
    provider,
    { name: "junctor", title: "Junctor", version: "0.1.0", instructions },
    {
      seal,
      clock,
      onError: (error, method) => log.error({ method, error: String(error) }, "serving a request failed"),
    },
  );

  const apply = async (next: GatewayConfig): Promise<void> => {
    // Whatever can fail comes before anything is changed.
    const nextChain = await createMiddlewareChain(next, file, clock, log);
    const lastChain = chain;
    const servers = withLocal(next.servers);
    config = next;
    chain = nextChain;
    access = createAccess(next, catalog, unnamed);
    guarded = withMiddleware(base, nextChain.middlewares);
    const kept = new Set(servers.map(({ name }) => name));
    const before = new Map(upstreams);
    const added = place(servers);
    const replaced = added.flatMap(({ name }) => before.get(name) ?? []);
    const gone = [...before.values()].filter(({ name }) => !kept.has(name));
    for (const { name } of gone) upstreams.delete(name);
    for (const kind of ["tools", "prompts", "resources"] as const) changes.report({ kind });
    await Promise.all([
      settlesWithin(Promise.all(added.map(begin)), readyMs, clock),
      ...[...replaced, ...gone].map((upstream) => upstream.retire(retireMs)),
      lastChain[Symbol.asyncDispose](),
    ]);
  };

  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= stop());
  const stop = async (): Promise<void> => {
    await parking.close();
    await Promise.all(Array.from(upstreams.values(), (upstream) => upstream[Symbol.asyncDispose]()));
    await chain[Symbol.asyncDispose]();
  };
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
    status: () => catalog.sources.map((source) => describeStatus(source, clock.now())),
    measure: async (name) => upstreams.get(name)?.measure(),
    collisions: () => catalog.snapshotFor("").collisions,
    update: async (next) => apply(parse(next, options)),
    apply,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** How a provider of this process is treated where the config does not say. */
function toLocalConfig(name: string): ServerConfig {
  return {
    name,
    launch: { kind: "command", command: name, args: [], env: {}, cwd: undefined },
    start: "eager",
    sharing: "shared",
    prefix: false,
    startTimeoutMs: 30_000,
    timeoutMs: 300_000,
    maxTotalMs: 1_800_000,
    maxConnections: 8,
    idleStopMs: undefined,
    allow: [],
    deny: [],
    tools: {},
  };
}

/** Configs are plain data, written in the same order each time. */
function isSame(one: ServerConfig | undefined, other: ServerConfig): boolean {
  return one !== undefined && JSON.stringify(one) === JSON.stringify(other);
}

function logHealth(
  log: GatewayLog,
  server: string,
  { health, cause }: Extract<UpstreamChange, { kind: "health" }>,
): void {
  switch (health.kind) {
    case "up": {
      const { mode } = health.agreement;
      return log.info({ server, revision: mode.revision, connectMs: health.connectMs }, `${server} is up`);
    }
    case "down": {
      const error = cause instanceof Error ? cause.message : String(cause);
      const inMs = Math.max(0, Math.round(health.nextTryAt - health.since));
      return log.warn(
        { server, reason: health.reason, error, inMs, isBroken: health.isBroken },
        `${server} is down`,
      );
    }
    case "idle":
    case "starting":
    case "stopped":
      return log.debug({ server }, `${server} is ${health.kind}`);
  }
}
