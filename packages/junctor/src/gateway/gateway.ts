import { type CredentialEvent, createMemoryStore } from "@junctor/client/internal";
import { type CallerLimits, systemClock } from "@junctor/core/async";
import { anyone, Catalog, describeCollision } from "@junctor/core/compose";
import { ClosedError } from "@junctor/core/errors";
import { createSeal } from "@junctor/core/mcp";
import { assertKnownKeys, packageVersion } from "@junctor/core/options";
import { createChanges } from "@junctor/core/provider";
import { anybody, type Authenticate } from "@junctor/server";
import { createListenLimits } from "@junctor/server/internal";
import {
  type Connections,
  createConnections,
  isProvable,
  Links,
  type LinksOptions,
} from "../accounts/index.ts";
import { Parking } from "../bridge/index.ts";
import {
  isOpen,
  proofInOrOut,
  sourceOfFiles,
  type ConfigIssue,
  type GatewayConfig,
  parseConfigValue,
} from "../config/index.ts";
import { KeptResults } from "../context/index.ts";
import { recordCredential } from "../credentials/index.ts";
import { createPinnedJson, openPins } from "../lock/index.ts";
import {
  silentLog,
  allSecrets,
  createHide,
  createSafeLog,
  isStrongSecret,
  joinOwnSecrets,
  joinSecrets,
  secretsAt,
} from "../log/index.ts";
import {
  createAccess,
  createCallerKinds,
  toNaming,
  findDeadRules,
  RuleWatch,
  compileRules,
  findUnmatchedRules,
} from "../policy/index.ts";
import { openListMemory, readDefinitions, logDisabled } from "../servers/index.ts";
import { probeIssuers } from "../tokens/index.ts";
import { type DescribeFailure, withLastWords, hideText } from "../upstream/index.ts";
import { createControls, createRevocable, withoutBarred } from "./controls.ts";
import { createEntrance, type EntranceParts } from "./entrance.ts";
import { Fleet } from "./fleet.ts";
import { type GatewayOptions, gatewayOptionKeys, type StartOptions } from "./gateway-options.ts";
import { joinReplicas, joinResults } from "./joined-replicas.ts";
import { createMiddlewareChain } from "./middleware-chain.ts";
import { GatewayMounts } from "./mounts.ts";
import type { Gateway, RunningGateway } from "./running-gateway.ts";

/**
 * Puts any number of MCP servers behind one. The config is what stands in the file: `mcpServers` or `servers`, and an
 * optional `junctor` section. Rejects with a `ConfigError` that lists everything that is wrong.
 *
 * @example
 * await using gateway = await createGateway({ mcpServers: { files: { command: "mcp-server-filesystem", args: ["."] } } });
 * await using listener = await listenHttp(gateway.server, { authenticate: gateway.authenticate });
 */
export async function createGateway(config: object, options: GatewayOptions = {}): Promise<Gateway> {
  assertKnownKeys("createGateway", options, gatewayOptionKeys);
  return startGateway(parse(config, options), { ...options, accounts: true });
}

function parse(
  config: object,
  { env = process.env, folder = process.cwd(), file = "config" }: GatewayOptions,
): GatewayConfig {
  return parseConfigValue(config, { env, folder, file, ...sourceOfFiles });
}

/** Starts a gateway from a config that was read and checked. */
export async function startGateway(
  first: GatewayConfig,
  options: StartOptions = {},
): Promise<RunningGateway> {
  const { clock = systemClock, file = "config", memoryFolder: folder } = options;
  const { startsWhen } = options;
  const { cluster, local = {}, unnamed = "refused", seal = createSeal({ now: () => clock.now() }) } = options;
  let config = first;
  const hide = createHide((server) => secretsAt(config, server));
  const log = createSafeLog(options.log ?? silentLog, hide);
  const firstListMs = (): number => options.firstListMs ?? config.firstListMs;
  const perCaller = toLiveLimits(() => config.perCaller);
  const parked = { clock, maxParkedPerCaller: () => perCaller.parked ?? 1024, at: cluster?.membership.id };
  const parking = options.shared?.parking ?? new Parking({ ...parked, ...options.parking });
  const changes = createChanges();
  const kinds = createCallerKinds();
  const catalog = new Catalog({
    kindOf: kinds.of,
    separator: () => config.separator,
    reservedFor: () => access.reservedFor,
    onCollision: (collision) => {
      const { key: name, owner, others } = collision;
      log.warn({ name, owner, others }, describeCollision(collision));
    },
  });
  const compiled = await compileRules(first, file);
  const access = createAccess(first, {
    catalog,
    unnamed,
    servers: () => fleet.servers,
    clock,
    log,
    rules: compiled,
    onRefused: (refused) => chain.recordRefusal(refused),
  });
  const { ownerOf, isReadOnly, describe } = access;
  const parts = { file, clock, log, ownerOf, isReadOnly, describe, hide, tokens: cluster?.tokens };
  let chain = await createMiddlewareChain(config, parts);
  logDisabled(log, first.disabled, []);
  const unmatched = (): readonly ConfigIssue[] => [
    ...findDeadRules(config, access.rules),
    ...findUnmatchedRules(config, fleet.servers),
  ];
  const rules = new RuleWatch(unmatched, log);
  const remembers = folder !== undefined && first.remember;
  // An edit that no person agreed to must not choose which texts of a definition count as the same.
  let agreedSecrets = allSecrets(first);
  const strong = (): readonly string[] => agreedSecrets.filter(isStrongSecret);
  const hideStrong = createHide(strong);
  const toJson = createPinnedJson(strong, hideStrong);
  const isExempt = (server: string): boolean => Object.hasOwn(local, server);
  let pins = openPins(first.lock, { log, toJson, isExempt });
  const memory = remembers ? openListMemory({ folder, hide: hideStrong, log, clock }) : undefined;
  const { shared: others, onServer, heldFd } = options;
  const logins = options.logins ?? { store: options.credentials ?? createMemoryStore() };
  const describeFailure: DescribeFailure = (failure, server) =>
    unnamed === "trusted" ? hideText(withLastWords(failure), (text) => hide(text, server)) : failure.reason;
  const shared = {
    catalog,
    parking,
    kinds,
    log,
    hide,
    describeFailure,
    clock,
    logins,
    pins: () => pins,
    shared: others,
  };
  const onCredential = (server: string, event: CredentialEvent): void =>
    recordCredential(chain.auditFile?.sink, server, event, clock);
  const listeners = { onChange: changes.report, onListed: () => rules.look(), onServer, onCredential };
  const isKnown: LinksOptions["isKnown"] = (caller) => isProvable(config, caller, controls.isRevoked);
  const links = options.accounts === true ? new Links({ seal, clock, ...first.http, isKnown }) : undefined;
  const fleet = new Fleet({
    ...shared,
    ...listeners,
    local,
    memory,
    links,
    cluster,
    heldFd,
    maxStarts: () => config.maxStarts,
  });

  const updateFleet = (): Promise<void> => fleet.update(config.servers, toNaming(config), firstListMs);
  let isReady = false;
  const ready = (startsWhen === undefined ? updateFleet() : startsWhen.then(updateFleet)).then(() => {
    isReady = true;
    catalog.settle();
    rules.look();
  });
  const results = { kept: new KeptResults({ clock }), ...(cluster && joinResults(cluster)) };
  const entranceParts: EntranceParts = {
    catalog,
    fleet,
    changes,
    log,
    hide,
    describeFailure,
    clock,
    seal,
    info: options.info ?? { name: "junctor", title: "Junctor", version: packageVersion },
    listenLimits: createListenLimits(perCaller, undefined, clock),
    config: () => config,
    pins: () => pins,
    chain: () => chain,
    observer: options.observer,
    results,
  };
  if (cluster !== undefined) joinReplicas(cluster, { ...entranceParts, results });
  const entrance = createEntrance(entranceParts, { viewFor: access.viewFor });
  const mounts = new GatewayMounts(entranceParts, access);
  const revocable = createRevocable(entrance.server, () => mounts.drain());
  const { server } = revocable;
  const revoke = (caller: string | undefined): void => {
    revocable.revoke(caller);
    connections?.revoke(caller);
  };

  let closing: Promise<void> | undefined;
  const apply = async (given: GatewayConfig, keepsModules = false): Promise<void> => {
    // Read at the start only: an edit must not choose for whom tokens are, or whether certificates are asked for.
    const next = { ...given, http: first.http };
    // Whatever can fail comes before anything is changed.
    const nextRules = await compileRules(next, file);
    const nextPins = keepsModules ? pins : openPins(next.lock, { log, toJson, isExempt });
    const nextChain = await createMiddlewareChain(next, { ...parts, earlier: chain, keepsModules });
    if (closing !== undefined) {
      await nextChain[Symbol.asyncDispose]();
      throw new ClosedError("not_sent", "the gateway is closed");
    }
    const lastChain = chain;
    pins = nextPins;
    logDisabled(log, next.disabled, config.disabled);
    // What was secret stays so: it may still turn up in what an old server says.
    config = {
      ...next,
      secrets: joinSecrets(next.secrets, config.secrets),
      ownSecrets: joinOwnSecrets(next.ownSecrets, config.ownSecrets),
    };
    if (!keepsModules) agreedSecrets = joinSecrets(allSecrets(next), agreedSecrets);
    chain = nextChain;
    for (const caller of access.apply(next, nextRules)) {
      revoke(caller);
      void parking.giveUpCaller(caller);
    }
    entrance.replace(nextChain.middlewares);
    mounts.replace(nextChain.middlewares);
    mounts.update(next);
    const updated = fleet.update(
      next.servers,
      toNaming(next),
      isReady ? () => Math.min(firstListMs(), addedListMs) : firstListMs,
    );
    for (const part of ["tools", "prompts", "resources"] as const) changes.report({ part });
    rules.look();
    await Promise.all([updated, lastChain[Symbol.asyncDispose]()]);
  };
  const stop = async (): Promise<void> => {
    controls[Symbol.dispose]();
    if (options.shared === undefined) await parking.close();
    await fleet[Symbol.asyncDispose]();
    await chain[Symbol.asyncDispose]();
  };
  const close = (): Promise<void> => (closing ??= stop());
  const shown = { ...shared, config: () => config, redactText: (text: string) => chain.redactText(text) };
  const controls = createControls({ ...shown, fleet, access, revoke, store: cluster?.store });
  const admit: Authenticate = Object.assign(
    (...request: Parameters<Authenticate>) =>
      access.authenticate === undefined ? anybody : withoutBarred(access.authenticate(...request), controls),
    { ...access.admit },
  );
  const connections: Connections | undefined =
    links && createConnections({ ...shown, links, seal, fleet, admit, onCredential });
  return {
    controls,
    server,
    provider: entrance.provider,
    mounts,
    serverAt: (name) => {
      const mounted = mounts.serverAt(name);
      return mounted && { ...mounted, onRevoked: (tell) => server.onRevoked?.(tell) ?? (() => {}) };
    },
    get authenticate() {
      return access.authenticate;
    },
    admit,
    perCaller,
    pages: connections?.pages,
    ready,
    status: controls.status,
    measure: async (name, timeoutMs) => fleet.upstreams.get(name)?.measure(timeoutMs),
    untilKnown: async (name) => fleet.upstreams.get(name)?.start(),
    unmatchedRules: unmatched,
    probeIssuers: () => probeIssuers(access.tokens),
    definitions: () => readDefinitions(fleet.upstreams.values(), toJson),
    collisions: () => catalog.snapshotFor(anyone).collisions,
    update: async (given) => {
      const next = parse(given, options);
      if (isOpen(next) !== isOpen(config)) throw proofInOrOut(file);
      await apply(next);
      await fleet.untilRetired();
    },
    apply,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The limits as the config has them at the moment. */
function toLiveLimits(limits: () => CallerLimits): CallerLimits {
  return new Proxy({}, { get: (_, key): unknown => Reflect.get(limits(), key) });
}

/** Others have lists already, which must not wait long for a server that an edit of the config added. */
const addedListMs = 2000;
