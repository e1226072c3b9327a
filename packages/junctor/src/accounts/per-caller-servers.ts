import type { CredentialEvent } from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import type { Catalog, Naming } from "@junctor/core/compose";
import type { Change, CallerInfo } from "@junctor/core/provider";
import { toConnectName } from "../catalog/index.ts";
import type { ServerConfig } from "../config/index.ts";
import type { Logins } from "../credentials/index.ts";
import type { Pins } from "../lock/index.ts";
import type { GatewayLog } from "../log/index.ts";
import type { UpstreamFactory } from "../servers/index.ts";
import { logCredential, type Upstream } from "../upstream/index.ts";
import type { Links } from "./links.ts";
import { createPerCallerServer, type PerCallerServer } from "./per-caller-server.ts";

interface PerCallerServersOptions {
  readonly catalog: Catalog;
  readonly log: GatewayLog;
  readonly clock: Clock;
  readonly logins: Logins;
  readonly pins: () => Pins | undefined;
  readonly factory: UpstreamFactory;
  /** Undefined where callers have no accounts of their own, whatever the config says. */
  readonly links: Links | undefined;
  readonly onChange: (change: Change) => void;
  readonly onCredential?: ((server: string, event: CredentialEvent) => void) | undefined;
}

/** How long the first lists of a caller are waited for. */
const firstListMs = (): number => 5000;
/** How long calls of a server that was removed or changed may take to finish. */
const retireMs = 10_000;

/** The servers of a gateway at which each caller has an account of its own. */
export class PerCallerServers implements AsyncDisposable {
  readonly #options: PerCallerServersOptions;
  readonly #servers = new Map<string, PerCallerServer>();
  readonly #closing = new Set<Promise<void>>();
  #naming: Naming = { separator: "__", maxLength: 64 };

  constructor(options: PerCallerServersOptions) {
    this.#options = options;
  }

  get all(): readonly PerCallerServer[] {
    return [...this.#servers.values()];
  }

  /** Whether a server of the config is one of these. */
  has({ credentials }: ServerConfig): boolean {
    return credentials === "perCaller" && this.#options.links !== undefined;
  }

  get(name: string): PerCallerServer | undefined {
    return this.#servers.get(name);
  }

  /** Replaces the set of servers. A server for which `runsTheSame` is false is made anew, and its lists are dropped. */
  update(
    configured: readonly ServerConfig[],
    naming: Naming,
    runsTheSame: (before: ServerConfig, after: ServerConfig) => boolean,
  ): void {
    this.#naming = naming;
    const wanted = new Map(configured.filter((server) => this.has(server)).map((each) => [each.name, each]));
    for (const [name, server] of this.#servers) {
      const next = wanted.get(name);
      if (next !== undefined && runsTheSame(server.config, next)) server.config = next;
      else this.#close(server, retireMs);
    }
    for (const [name, config] of wanted)
      if (!this.#servers.has(name)) this.#servers.set(name, this.#create(config));
  }

  /** The upstreams that a caller uses. */
  upstreamsOf(caller: CallerInfo): readonly Upstream[] {
    return this.all.flatMap((server) => server.upstreamOf(caller) ?? []);
  }

  /** A caller was revoked: its accounts are closed. */
  revoke(caller: string | undefined): void {
    for (const { accounts } of this.all) accounts.revoke(caller);
  }

  sessionEnded(session: object): void {
    for (const server of this.all) server.sessionEnded(session);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.all) this.#close(server);
    await Promise.all(this.#closing);
  }

  #close(server: PerCallerServer, graceMs = 0): void {
    this.#servers.delete(server.config.name);
    const closed = server.retire(graceMs).finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #create(config: ServerConfig): PerCallerServer {
    const { catalog, log, clock, logins, pins, factory, links, onChange, onCredential } = this.#options;
    const { name } = config;
    if (links === undefined) throw new TypeError(`${name}: callers have no accounts here`);
    return createPerCallerServer({
      config,
      links,
      logins,
      clock,
      connectName: () => toConnectName(config, this.#naming),
      signIn: () => links.signInAt(name),
      createUpstream: (authorizer, report) =>
        factory.create({
          config: { ...(this.#servers.get(name)?.config ?? config), start: "lazy" },
          firstListMs,
          predecessor: undefined,
          authorizer,
          report,
        }),
      onEvent: (event) => {
        logCredential(log, name, event);
        onCredential?.(name, event);
      },
      onChange,
      onListed: (listed) => {
        catalog.outdated();
        pins()?.look(name, listed, undefined);
      },
    });
  }
}
