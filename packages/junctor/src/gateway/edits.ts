import { ClosedError } from "@junctor/core/errors";
import type { Provider } from "@junctor/core/provider";
import type { GatewayConfig } from "../config/index.ts";
import { allSecrets, joinOwnSecrets, joinSecrets } from "../log/index.ts";
import { compileRules, createCallerPolicy, findRevoked, toNaming } from "../policy/index.ts";
import { logDisabled } from "../servers/index.ts";
import { createMiddlewareChain } from "./chain.ts";
import type { Entrances } from "./entrances.ts";
import type { Generation } from "./generation.ts";
import type { Runtime } from "./runtime.ts";
import { createStack, type Entrance } from "./stack.ts";

interface EditOptions {
  readonly runtime: Runtime;
  readonly entrances: Entrances;
  readonly current: () => Generation;
  /** Replaces the one reference to the current generation. */
  readonly replace: (next: Generation) => void;
  /** Ends all that a caller has open. */
  readonly revoke: (caller: string | undefined) => void;
  /** How long lists wait for servers that an edit adds. */
  readonly waitMs: () => number;
}

/** The edits of a gateway's config, one after the other: each makes a generation, which replaces the one before. */
export class Edits {
  readonly #options: EditOptions;
  /** Read at the start only: an edit must not choose for whom tokens are, or whether certificates are asked for. */
  readonly #http: GatewayConfig["http"];
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: EditOptions) {
    this.#options = options;
    this.#http = options.current().config.http;
  }

  /** Rejects, with nothing changed, for a config that is wrong. Resolves when the servers that it added are listed or were waited for. */
  async apply(config: GatewayConfig, keepsModules = false): Promise<void> {
    const swapped = this.#last.then(() => this.#swap({ ...config, http: this.#http }, keepsModules));
    this.#last = swapped.catch(() => {});
    await (
      await swapped
    ).settled;
  }

  /** Refuses further edits. */
  close(): void {
    this.#isClosed = true;
  }

  async #swap(config: GatewayConfig, keepsModules: boolean): Promise<{ readonly settled: Promise<unknown> }> {
    const { runtime, current, replace } = this.#options;
    const earlier = current();
    const next = await createGeneration(config, runtime, { earlier, keepsModules });
    if (this.#isClosed) {
      await next.chain[Symbol.asyncDispose]();
      throw new ClosedError("not_sent", "the gateway is closed");
    }
    replace(next);
    return { settled: this.#reconcile(earlier, next) };
  }

  /** Brings what lives on in line with a generation that has just become the current one. All but the waiting is done at once. */
  #reconcile(last: Generation, { config, naming, policy, chain }: Generation): Promise<unknown> {
    const { runtime, entrances, revoke, waitMs } = this.#options;
    const { log, fleet, changes, rules } = runtime;
    chain.takeOver();
    logDisabled(log, config.disabled, last.config.disabled);
    for (const caller of findRevoked(last.policy, policy)) revoke(caller);
    const listed = fleet.setServers(config.servers, naming, waitMs);
    entrances.follow();
    for (const part of ["tools", "prompts", "resources"] as const) changes.report({ part });
    rules.look();
    return Promise.all([listed, last.chain[Symbol.asyncDispose]()]);
  }
}

/**
 * Makes a generation. Whatever can be wrong with a config fails here. The earlier generation serves meanwhile, and is not touched.
 */
export async function createGeneration(
  given: GatewayConfig,
  runtime: Runtime,
  {
    earlier,
    keepsModules = false,
  }: {
    readonly earlier?: Generation;
    /** Whether no person agreed to the config: then modules and the lock stay as they are. */
    readonly keepsModules?: boolean;
  } = {},
): Promise<Generation> {
  const config = keepSecrets(given, earlier?.config);
  const naming = toNaming(config);
  const rules = await compileRules(config, runtime.file);
  const policy = createCallerPolicy(config, { ...runtime.policyParts, rules, earlier: earlier?.policy });
  const pins = earlier !== undefined && keepsModules ? earlier.pins : runtime.openPins(config.lock);
  const agreedSecrets =
    earlier === undefined
      ? allSecrets(config)
      : keepsModules
        ? earlier.agreedSecrets
        : joinSecrets(allSecrets(given), earlier.agreedSecrets);
  const { file, clock, log, hide, cluster } = runtime;
  const { ownerOf, isReadOnly, describe } = policy;
  const chain = await createMiddlewareChain(config, {
    file,
    clock,
    log,
    hide,
    tokens: cluster?.tokens,
    ownerOf,
    isReadOnly,
    describe,
    keepsModules,
    ...(earlier === undefined ? {} : { earlier: earlier.chain }),
  });
  try {
    const readers = new Map<string | undefined, Provider>();
    const { kept, elsewhere } = runtime.results;
    const results = {
      kept,
      ...(elsewhere && { elsewhere: { ...elsewhere, serve: readers.set.bind(readers) } }),
    };
    const parts = { config, naming, policy, pins, chain, agreedSecrets };
    const entrances = new Map(
      entrancesOf(config).map((entrance) => [
        entrance.name,
        createStack(entrance, { ...parts, runtime, results }),
      ]),
    );
    return Object.freeze({ ...parts, entrances, readers });
  } catch (error) {
    await chain[Symbol.asyncDispose]();
    throw error;
  }
}

/** The ways in of a config. A profile counts before a server of the same name. */
function entrancesOf({ profiles, servers }: GatewayConfig): readonly Entrance[] {
  const named = new Set(profiles.map(({ name }) => name));
  return [
    { kind: "all" },
    ...profiles.map((profile) => ({ kind: "profile", name: profile.name, profile }) as const),
    ...servers.flatMap(({ name }) => (named.has(name) ? [] : [{ kind: "server", name } as const])),
  ];
}

/** Earlier secrets stay secret: an old server may still repeat them. */
function keepSecrets(config: GatewayConfig, earlier: GatewayConfig | undefined): GatewayConfig {
  if (earlier === undefined) return config;
  return {
    ...config,
    secrets: joinSecrets(config.secrets, earlier.secrets),
    ownSecrets: joinOwnSecrets(config.ownSecrets, earlier.ownSecrets),
  };
}
