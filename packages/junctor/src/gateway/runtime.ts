import { type CredentialEvent, createMemoryStore } from "@junctor/client/internal";
import { type CallerLimits, type Clock, systemClock } from "@junctor/core/async";
import { Catalog, describeCollision } from "@junctor/core/compose";
import { createSeal, type Implementation, type Observer, type Seal } from "@junctor/core/mcp";
import { packageVersion } from "@junctor/core/options";
import { type Change, type ChangeSource, createChanges } from "@junctor/core/provider";
import { createListenLimits, type ListenLimits } from "@junctor/server/internal";
import { isProvable, Links, type LinksOptions } from "../accounts/index.ts";
import { Parking } from "../bridge/index.ts";
import type { Cluster, TokenSource } from "../cluster/index.ts";
import type { GatewayConfig } from "../config/index.ts";
import { KeptResults, type ResultsElsewhere, resultsName } from "../context/index.ts";
import { type Logins, recordCredential } from "../credentials/index.ts";
import { createPinnedJson, openPins, type PinnedJson, type Pins } from "../lock/index.ts";
import {
  allSecrets,
  createHide,
  createSafeLog,
  type GatewayLog,
  type HideSecrets,
  isStrongSecret,
  secretsAt,
  silentLog,
} from "../log/index.ts";
import {
  type CallerPolicyOptions,
  findDeadRules,
  findUnmatchedRules,
  RuleWatch,
  SeenCallers,
  toCallerKind,
} from "../policy/index.ts";
import { openListMemory } from "../servers/index.ts";
import { type DescribeFailure, hideText, withLastWords } from "../upstream/index.ts";
import { Fleet } from "./fleet.ts";
import type { Generation } from "./generation.ts";
import type { StartOptions } from "./options.ts";

/** What of a gateway lives on when an edit replaces its generation. */
export interface Runtime {
  /** The file of the config, for messages. */
  readonly file: string;
  readonly clock: Clock;
  readonly log: GatewayLog;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: HideSecrets;
  /** How callers are told of a failure of a server. */
  readonly describeFailure: DescribeFailure;
  readonly seal: Seal;
  readonly info: Implementation;
  readonly observer: Observer | undefined;
  readonly listenLimits: ListenLimits;
  /** What one caller may hold, as the config says at the moment. */
  readonly perCaller: CallerLimits;
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  readonly parking: Parking;
  /** Whether the parked calls are this gateway's alone. */
  readonly ownsParking: boolean;
  readonly changes: ChangeSource<Change>;
  readonly logins: Logins;
  /** Where callers connect accounts of their own; undefined where all callers are one person. */
  readonly links: Links | undefined;
  readonly results: { readonly kept: KeptResults; readonly elsewhere?: Omit<ResultsElsewhere, "serve"> };
  readonly cluster: Cluster | undefined;
  /** Gives out the tokens of limits that several replicas share. */
  readonly tokens: TokenSource | undefined;
  readonly rules: RuleWatch;
  /** Callers that are refused whatever key they present. */
  readonly barred: Set<string>;
  readonly seen: SeenCallers;
  readonly policyParts: Omit<CallerPolicyOptions, "rules" | "earlier">;
  readonly toPinnedJson: PinnedJson;
  openPins(lock: GatewayConfig["lock"]): Pins | undefined;
  /** The generation that is served at the moment; undefined until the first is made. */
  current(): Generation | undefined;
  onCredential(server: string, event: CredentialEvent): void;
}

/** Makes what lives as long as a gateway. It reads the current generation whenever it needs something of the config. */
export function createRuntime(
  first: GatewayConfig,
  options: StartOptions,
  current: () => Generation | undefined,
): Runtime {
  const { clock = systemClock, file = "config", cluster, local = {}, unnamed = "refused" } = options;
  const { memoryFolder, heldFd, onServer, shared } = options;
  const config = (): GatewayConfig => current()?.config ?? first;
  const hide = createHide((server) => secretsAt(config(), server));
  const log = createSafeLog(options.log ?? silentLog, hide);
  const seal = options.seal ?? createSeal({ now: () => clock.now() });
  const describeFailure: DescribeFailure = (failure, server) =>
    unnamed === "trusted" ? hideText(withLastWords(failure), (text) => hide(text, server)) : failure.reason;
  const perCaller = toLiveLimits(() => config().perCaller);
  const parked = { clock, maxParkedPerCaller: () => perCaller.parked ?? 1024, at: cluster?.membership.id };
  const parking = shared?.parking ?? new Parking({ ...parked, ...options.parking });
  const changes = createChanges();
  const catalog = new Catalog({
    kindOf: (caller) => toCallerKind(caller, fleet.variety),
    separator: () => config().separator,
    reservedFor: () => current()?.policy.reservedFor ?? (() => undefined),
    onCollision: (collision) => {
      const { key: name, owner, others } = collision;
      log.warn({ name, owner, others }, describeCollision(collision));
    },
  });
  const strong = (): readonly string[] =>
    (current()?.agreedSecrets ?? allSecrets(first)).filter(isStrongSecret);
  const hideStrong = createHide(strong);
  const toPinnedJson = createPinnedJson(strong, hideStrong);
  const isExempt = (server: string): boolean => Object.hasOwn(local, server);
  const memory =
    memoryFolder !== undefined && first.remember
      ? openListMemory({ folder: memoryFolder, hide: hideStrong, log, clock })
      : undefined;
  const barred = new Set<string>();
  const isKnown: LinksOptions["isKnown"] = (caller) =>
    isProvable(config(), caller, (name) => barred.has(name));
  const links = options.accounts === true ? new Links({ seal, clock, ...first.http, isKnown }) : undefined;
  const logins = options.logins ?? { store: options.credentials ?? createMemoryStore() };
  const onCredential = (server: string, event: CredentialEvent): void =>
    recordCredential(current()?.chain.auditFile?.sink, server, event, clock);
  const rules = new RuleWatch(() => findRuleIssues(current(), fleet), log);
  const fleet = new Fleet({
    catalog,
    parking,
    log,
    hide,
    describeFailure,
    clock,
    logins,
    shared,
    local,
    memory,
    maxStarts: () => config().maxStarts,
    links,
    cluster,
    heldFd,
    onServer,
    onCredential,
    pins: () => current()?.pins,
    onChange: changes.report,
    onListed: () => rules.look(),
  });
  return {
    file,
    clock,
    log,
    hide,
    describeFailure,
    seal,
    catalog,
    fleet,
    parking,
    changes,
    logins,
    links,
    cluster,
    rules,
    barred,
    toPinnedJson,
    current,
    onCredential,
    ownsParking: shared === undefined,
    info: options.info ?? { name: "junctor", title: "Junctor", version: packageVersion },
    observer: options.observer,
    perCaller,
    listenLimits: createListenLimits(perCaller, undefined, clock),
    results: { kept: new KeptResults({ clock }), ...(cluster && { elsewhere: resultsAt(cluster) }) },
    tokens: cluster?.tokens,
    seen: new SeenCallers(() => clock.date()),
    policyParts: {
      catalog,
      unnamed,
      clock,
      log,
      servers: () => fleet.servers,
      onRefused: (refused) => current()?.chain.recordRefusal(refused),
    },
    openPins: (lock) => openPins(lock, { log, toJson: toPinnedJson, isExempt }),
  };
}

/** The limits as the config has them at the moment. */
function toLiveLimits(limits: () => CallerLimits): CallerLimits {
  return new Proxy({}, { get: (_, key): unknown => Reflect.get(limits(), key) });
}

/** Rules of the config that match nothing, as far as the servers they may be about are listed. */
export function findRuleIssues(
  generation: Generation | undefined,
  { servers }: Fleet,
): ReturnType<typeof findDeadRules> {
  if (generation === undefined) return [];
  const { config, policy } = generation;
  return [...findDeadRules(config, policy.rules), ...findUnmatchedRules(config, servers)];
}

/** How results that other replicas keep are read. */
function resultsAt({ membership, clientAt }: Cluster): Omit<ResultsElsewhere, "serve"> {
  return {
    here: membership.id,
    readerAt: (at, profile) => clientAt(at, resultsName(profile)),
  };
}
