import type { Catalog } from "@junctor/core/compose";
import type { Change, Provider } from "@junctor/core/provider";
import type { ServerConfig } from "../config/index.ts";
import type { GatewayLog } from "../log/index.ts";
import { createLocalServer, type GatewayServer, toLocalConfig } from "./gateway-server.ts";

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
  /** Stop listening to the providers. */
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

  /** The server of a provider, made anew when its config says something else; undefined for an unknown name. */
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
