import type { Clock } from "@junctor/core/async";
import type { GatewayConfig } from "../config/index.ts";
import type { RunningGateway } from "../gateway/index.ts";
import type { ServerStatus } from "../servers/index.ts";
import { type FrontPlace, parseForFront, variablesOf } from "./projects.ts";

/** A gateway for all fronts whose resolved config is the same; see {@link parseForFront}. */
export interface Scope {
  readonly gateway: RunningGateway;
  /** The address of its admin page, with the key; undefined when it has none. */
  readonly pageUrl: string | undefined;
  readonly place: FrontPlace;
  /** The config it was started with. */
  readonly config: GatewayConfig;
  fronts: number;
}

/** A gateway that was opened, and everything that belongs to it. */
interface OpenedScope extends AsyncDisposable {
  readonly gateway: RunningGateway;
  readonly pageUrl: string | undefined;
}

interface ScopesOptions {
  readonly file: string;
  /** The text of the config that a person agreed to. */
  readonly text: () => string;
  /** Starts a gateway; `parse` reads an edited config as these fronts see it. */
  readonly open: (config: GatewayConfig, parse: (text: string) => GatewayConfig) => Promise<OpenedScope>;
  readonly clock: Clock;
  /** A gateway without a front is closed after this time. */
  readonly idleMs: number;
}

interface KnownScope {
  readonly scope: Scope;
  readonly opened: OpenedScope;
  stopIdle: (() => void) | undefined;
}

/** The gateways of a daemon: one for all fronts whose resolved config is the same, whatever their projects and variables. */
export class Scopes implements AsyncDisposable {
  readonly #options: ScopesOptions;
  readonly #known = new Map<string, Promise<KnownScope>>();

  constructor(options: ScopesOptions) {
    this.#options = options;
  }

  /** The names of the variables that a front is asked for. */
  variables(): readonly string[] {
    const { file, text } = this.#options;
    return variablesOf(file, text());
  }

  /** The gateways there are now. */
  async all(): Promise<readonly Scope[]> {
    const known = await Promise.allSettled(this.#known.values());
    return known.flatMap((each) => (each.status === "fulfilled" ? [each.value.scope] : []));
  }

  /** Starts a server anew in every gateway that has it. Resolves when it is up or has failed once in each of them. */
  async restart(
    name: string,
  ): Promise<{ readonly servers: readonly ServerStatus[]; readonly names: readonly string[] }> {
    const gateways = (await this.all()).map(({ gateway }) => gateway);
    await Promise.all(gateways.map(({ controls }) => controls.restart(name)));
    const all = gateways.flatMap((gateway) => gateway.status());
    return {
      servers: all.filter((server) => server.name === name),
      names: [...new Set(all.map((server) => server.name))],
    };
  }

  /** The gateway for a front, which gives it back by the returned function. Rejects with a `ConfigError`. */
  async take(place: FrontPlace): Promise<{ readonly scope: Scope; readonly release: () => void }> {
    const { file, text, open } = this.#options;
    const config = parseForFront(file, text(), place);
    const key = JSON.stringify(config);
    const opening = this.#known.get(key) ?? this.#open(key, place, config, open);
    const known = await opening;
    known.stopIdle?.();
    known.scope.fronts++;
    return { scope: known.scope, release: () => this.#release(key, known) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const known = await Promise.allSettled(this.#known.values());
    this.#known.clear();
    await Promise.all(
      known.map(async (each) => {
        if (each.status === "rejected") return;
        each.value.stopIdle?.();
        await each.value.opened[Symbol.asyncDispose]();
      }),
    );
  }

  #open(
    key: string,
    place: FrontPlace,
    config: GatewayConfig,
    open: ScopesOptions["open"],
  ): Promise<KnownScope> {
    const parse = (text: string): GatewayConfig => parseForFront(this.#options.file, text, place);
    const opening = open(config, parse).then((opened): KnownScope => {
      const { gateway, pageUrl } = opened;
      const scope: Scope = { gateway, pageUrl, place, config, fronts: 0 };
      return { scope, opened, stopIdle: undefined };
    });
    this.#known.set(key, opening);
    // The next front tries again.
    opening.catch(() => this.#known.delete(key));
    return opening;
  }

  #release(key: string, known: KnownScope): void {
    known.scope.fronts--;
    if (known.scope.fronts > 0) return;
    const { clock, idleMs } = this.#options;
    known.stopIdle?.();
    known.stopIdle = clock.timer(idleMs, () => {
      // The last gateway ends with the daemon.
      if (this.#known.size === 1) return;
      this.#known.delete(key);
      void known.opened[Symbol.asyncDispose]();
    });
  }
}
