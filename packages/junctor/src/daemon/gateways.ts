import { homedir } from "node:os";
import type { Clock } from "@junctor/core/async";
import {
  type DisabledServer,
  type GatewayConfig,
  parseConfigFile,
  type ServerConfig,
} from "../config/index.ts";
import type { RunningGateway } from "../gateway/index.ts";
import type { ServerStatus } from "../servers/index.ts";

/** A gateway for all fronts whose resolved config is the same; see {@link parseForFront}. */
export interface SharedGateway {
  readonly gateway: RunningGateway;
  /** The address of its admin page, with the key; undefined when it has none. */
  readonly pageUrl: string | undefined;
  readonly place: FrontPlace;
  /** The config it was started with. */
  readonly config: GatewayConfig;
  fronts: number;
}

/** A gateway that was opened, and everything that belongs to it. */
interface OpenedGateway extends AsyncDisposable {
  readonly gateway: RunningGateway;
  readonly pageUrl: string | undefined;
}

interface DaemonGatewaysOptions {
  readonly file: string;
  /** The text of the config that a person agreed to. */
  readonly text: () => string;
  /** Starts a gateway; `parse` reads an edited config as these fronts see it. */
  readonly open: (config: GatewayConfig, parse: (text: string) => GatewayConfig) => Promise<OpenedGateway>;
  readonly clock: Clock;
  /** A gateway without a front is closed after this time. */
  readonly idleMs: number;
}

interface KnownGateway {
  readonly shared: SharedGateway;
  readonly opened: OpenedGateway;
  stopIdle: (() => void) | undefined;
}

/** The gateways of a daemon: one for all fronts whose resolved config is the same, whatever their projects and variables. */
export class DaemonGateways implements AsyncDisposable {
  readonly #options: DaemonGatewaysOptions;
  readonly #known = new Map<string, Promise<KnownGateway>>();

  constructor(options: DaemonGatewaysOptions) {
    this.#options = options;
  }

  /** The names of the variables that a front is asked for. */
  variables(): readonly string[] {
    const { file, text } = this.#options;
    return variablesOf(file, text());
  }

  /** The gateways that are open now. */
  async all(): Promise<readonly SharedGateway[]> {
    const known = await Promise.allSettled(this.#known.values());
    return known.flatMap((each) => (each.status === "fulfilled" ? [each.value.shared] : []));
  }

  /** Restarts a server in every gateway that has it. Resolves when it is up or has failed once in each of them. */
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

  /** The gateway for a front, which calls `release` when it leaves. Rejects with a `ConfigError`. */
  async take(place: FrontPlace): Promise<{ readonly shared: SharedGateway; readonly release: () => void }> {
    const { file, text, open } = this.#options;
    const config = parseForFront(file, text(), place);
    const key = JSON.stringify(config);
    const opening = this.#known.get(key) ?? this.#open(key, place, config, open);
    const known = await opening;
    known.stopIdle?.();
    known.shared.fronts++;
    return { shared: known.shared, release: () => this.#release(key, known) };
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
    open: DaemonGatewaysOptions["open"],
  ): Promise<KnownGateway> {
    const parse = (text: string): GatewayConfig => parseForFront(this.#options.file, text, place);
    const opening = open(config, parse).then((opened): KnownGateway => {
      const { gateway, pageUrl } = opened;
      const shared: SharedGateway = { gateway, pageUrl, place, config, fronts: 0 };
      return { shared, opened, stopIdle: undefined };
    });
    this.#known.set(key, opening);
    // The next front tries again.
    opening.catch(() => this.#known.delete(key));
    return opening;
  }

  #release(key: string, known: KnownGateway): void {
    known.shared.fronts--;
    if (known.shared.fronts > 0) return;
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

/** The facts about a front that the launch of a server may depend on. */
interface FrontPlace {
  /** The values of the variables that the config names. */
  readonly env: { readonly [name: string]: string };
  /** The folder of the project; undefined when the client was not started in one. */
  readonly workspace: string | undefined;
}

/** Servers that look at the folder they are started in, as of November 2026. */
const lookAtFolder =
  /(?:^|[\s/@])(?:mcp-server-git|git-mcp-server|nx-mcp|serena|serena-mcp-server)(?:@|\s|$)/;
/** Whether a word of a command means another file in each folder. */
export const isRelativePath = (word: string): boolean => /^\.{1,2}(?:$|[/\\])/.test(word);
const otherProject = "/junctor-other-project";

/**
 * The config as it holds for one front. A server whose launch depends on the project runs in its folder, as a process for each
 * project; all others run in the home folder, wherever the daemon was started. Throws a `ConfigError`.
 */
export function parseForFront(file: string, text: string, { env, workspace }: FrontPlace): GatewayConfig {
  const config = parseConfigFile(file, text, env, workspace ?? false);
  const elsewhere = parseConfigFile(file, text, env, otherProject);
  const others = new Map(elsewhere.servers.map((server) => [server.name, server]));
  const disabled: DisabledServer[] = [...config.disabled];
  const servers = config.servers.flatMap((server): readonly ServerConfig[] => {
    const { launch, name, prefix, tools, audit } = server;
    // A command is run where the person works, if that is known.
    if (launch.kind === "commands") {
      const place = server.workspace === "shared" ? undefined : workspace;
      return [{ ...server, launch: { ...launch, cwd: launch.cwd ?? place ?? homedir() } }];
    }
    if (launch.kind !== "command") return [server];
    const isOwn = isOfProject(server, others.get(name));
    const cwd = launch.cwd ?? (isOwn ? workspace : homedir());
    if (cwd !== undefined) return [{ ...server, launch: { ...launch, cwd } }];
    disabled.push({ name, prefix, tools, audit, reason: noProject });
    return [];
  });
  return { ...config, servers, disabled };
}

const noProject =
  "it works in the folder of a project, and the client was not started in one: " +
  'write --workspace FOLDER after attach, or "workspace": "shared" for this server';

/** Whether each project has a process of its own of a server. `other` is the same server as another project would have it. */
export function isOfProject(server: ServerConfig, other: ServerConfig | undefined): boolean {
  const { launch, workspace } = server;
  if (launch.kind !== "command" || workspace === "shared") return false;
  if (workspace === "each") return true;
  const words = [launch.command, ...launch.args];
  const isElsewhere = JSON.stringify(launch) !== JSON.stringify(other?.launch);
  return isElsewhere || words.some(isRelativePath) || lookAtFolder.test(words.join(" "));
}

/** The names of the variables that a config fills in. Those of a config that is wrong are found as far as it was read. */
export function variablesOf(file: string, text: string): readonly string[] {
  const names = new Set<string>();
  const env = new Proxy<{ [name: string]: string }>(
    {},
    {
      get: (_, name) => note(name),
      getOwnPropertyDescriptor: (_, name) => {
        note(name);
        return undefined;
      },
    },
  );
  const note = (name: string | symbol): undefined => {
    if (typeof name === "string") names.add(name);
  };
  try {
    parseConfigFile(file, text, env, otherProject);
  } catch {
    // A front that uses this config gets the error from `parseForFront`.
  }
  return [...names];
}
