import { anyone, type Catalog, createPolledLists } from "@junctor/core/compose";
import { newestModernRevision } from "@junctor/core/mcp";
import { type Change, createCallContext, type Provider } from "@junctor/core/provider";
import { parseConfigValue, type ServerConfig } from "../config/index.ts";
import type { GatewayLog } from "../log/index.ts";
import { type Health, listParts } from "../upstream/index.ts";
import type { GatewayServer } from "./gateway-server.ts";

interface LocalServersOptions {
  /** By name. */
  readonly providers: { readonly [name: string]: Provider };
  readonly catalog: Catalog;
  readonly log: GatewayLog;
  readonly onChange: (change: Change) => void;
}

/** The providers of this process among the servers of a gateway. */
export class LocalServers implements Disposable {
  readonly #options: LocalServersOptions;
  readonly #servers = new Map<string, GatewayServer>();
  /** Functions that stop listening to the providers. */
  readonly #stops = new Set<() => void>();

  constructor(options: LocalServersOptions) {
    this.#options = options;
  }

  /** The configs of the providers that a config does not name. */
  missingIn(configured: readonly ServerConfig[]): readonly ServerConfig[] {
    const named = new Set(configured.map(({ name }) => name));
    return Object.keys(this.#options.providers).flatMap((name) =>
      named.has(name) ? [] : toLocalConfig(name),
    );
  }

  has(name: string): boolean {
    return Object.hasOwn(this.#options.providers, name);
  }

  /** The server of a provider, made again when its config says something else; undefined for an unknown name. */
  get(config: ServerConfig): GatewayServer | undefined {
    const { name } = config;
    const { log, catalog } = this.#options;
    const provider = this.has(name) ? this.#options.providers[name] : undefined;
    const known = this.#servers.get(name);
    if (provider === undefined || JSON.stringify(known?.config) === JSON.stringify(config)) return known;
    const server = createLocalServer(config, provider, {
      onChanged: () => catalog.outdated(),
      onListError: (_, error) => log.warn({ server: name, error: String(error) }, `${name} cannot be listed`),
    });
    if (known === undefined) this.#listen(name, provider);
    this.#servers.set(name, server);
    return server;
  }

  [Symbol.dispose](): void {
    for (const stop of this.#stops) stop();
  }

  #listen(name: string, provider: Provider): void {
    const { onChange } = this.#options;
    const stop = provider.onChange?.((change) => onChange({ ...change, origin: name }));
    if (stop !== undefined) this.#stops.add(stop);
  }
}

/** The config of a provider of this process that the file does not mention: its names stay as they are. */
function toLocalConfig(name: string): readonly ServerConfig[] {
  const config = {
    mcpServers: { [name]: { command: name } },
    junctor: { servers: { [name]: { prefix: false } } },
  };
  return parseConfigValue(config, { file: name, env: {} }).servers;
}

/** The health of a server without a connection that could fail. */
export const alwaysUp: Health = {
  kind: "up",
  since: 0,
  connectMs: 0,
  agreement: {
    mode: { kind: "modern", revision: newestModernRevision },
    serverInfo: undefined,
    capabilities: {},
    instructions: undefined,
  },
};

/** A provider of this process: always up, called directly. */
function createLocalServer(
  config: ServerConfig,
  provider: Provider,
  options: {
    readonly onListError: (name: string, error: unknown) => void;
    readonly onChanged: () => void;
  },
): GatewayServer {
  const { name } = config;
  const lists = createPolledLists({ name, provider, ...options });
  for (const part of listParts) void lists.beginListing(createCallContext(anyone), part);
  return {
    config,
    provider,
    health: alwaysUp,
    isListed: true,
    isSettled: true,
    listedFor: (caller = anyone) => ({
      ...lists.listsFor(caller),
      hints: lists.listsFor(caller).hints ?? { ttlMs: 0, cacheScope: "private" },
      problems: [],
      isConfirmed: true,
      // A tool that was added since may be called before it is listed.
      areToolsConfirmed: false,
      faults: [],
    }),
    beginListing: lists.beginListing,
    untilListed: (part, context) => lists.untilListed(context, part),
    unavailable: () => new Error(`${name} is always available`),
  };
}
