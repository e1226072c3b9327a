import { type CredentialEvent, createMemoryStore } from "@junctor/client/internal";
import { type CallerLimits, type Clock, dateOf, systemClock } from "@junctor/core/async";
import { Catalog, describeCollision } from "@junctor/core/compose";
import { createSeal, type Implementation, type Observer, type Seal } from "@junctor/core/mcp";
import { defined, packageVersion } from "@junctor/core/options";
import { type AuditSink, type Change, type ChangeSource, createChanges } from "@junctor/core/provider";
import { createListenLimits, type ListenLimits } from "@junctor/server/internal";
import { isProvable, Links, type LinksOptions } from "../accounts/index.ts";
import { type ApprovalEvent, Approvals, useMs } from "../approvals/index.ts";
import { Parking } from "../bridge/index.ts";
import type { Cluster } from "../cluster/index.ts";
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
import { KeptCalls, openCallFile, SharedCalls } from "../once/index.ts";
import {
  type CallerPolicyOptions,
  findDeadRules,
  findUnmatchedRules,
  RuleWatch,
  SeenCallers,
  toCallerKind,
} from "../policy/index.ts";
import { ListMemory } from "../servers/index.ts";
import { type DescribeFailure, hideText, withLastWords } from "../upstream/index.ts";
import { Fleet } from "./fleet.ts";
import type { Generation } from "./generation.ts";
import type { StartOptions } from "./options.ts";

/**
 * The parts of a gateway that live on when an edit replaces its generation. It reads the current generation whenever it needs something of
 * the config.
 */
export class Runtime {
  /** The generation that is served at the moment; undefined until the first is made. */
  readonly current: () => Generation | undefined;
  /** The file of the config, for messages. */
  readonly file: string;
  readonly clock: Clock;
  readonly log: GatewayLog;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: HideSecrets;
  /** How the failure of a server is described to callers. */
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
  readonly changes: ChangeSource<Change> = createChanges();
  readonly logins: Logins;
  /** Where callers connect accounts of their own; undefined where all callers are one person. */
  readonly links: Links | undefined;
  readonly results: { readonly kept: KeptResults; readonly elsewhere?: Omit<ResultsElsewhere, "serve"> };
  /** Calls that came with an idempotency key; undefined where keys are ignored. */
  readonly keptCalls: (KeptCalls & Disposable) | undefined;
  /** Calls that wait for a person, and the answers that were used. */
  readonly approvals: Approvals;
  /** Notes which answers were used. */
  readonly approvalUses: Disposable;
  readonly cluster: Cluster | undefined;
  readonly rules: RuleWatch;
  /** Callers that are refused whatever key they present. */
  readonly barred = new Set<string>();
  readonly seen: SeenCallers;
  readonly policyParts: Omit<CallerPolicyOptions, "rules" | "earlier">;
  readonly toPinnedJson: PinnedJson;
  readonly onCredential: (server: string, event: CredentialEvent) => void;
  readonly #isLocal: (server: string) => boolean;

  constructor(first: GatewayConfig, options: StartOptions, current: () => Generation | undefined) {
    const { clock = systemClock, cluster, shared, local = {}, unnamed = "refused" } = options;
    const config = (): GatewayConfig => current()?.config ?? first;
    const strong = (): readonly string[] =>
      (current()?.agreedSecrets ?? allSecrets(first)).filter(isStrongSecret);
    const hideStrong = createHide(strong);
    this.current = current;
    this.file = options.file ?? "config";
    this.clock = clock;
    this.cluster = cluster;
    this.hide = createHide((server) => secretsAt(config(), server));
    this.log = createSafeLog(options.log ?? silentLog, this.hide);
    this.describeFailure = (failure, server) =>
      unnamed === "trusted"
        ? hideText(withLastWords(failure), (text) => this.hide(text, server))
        : failure.reason;
    this.seal = options.seal ?? createSeal({ now: () => clock.now() });
    this.info = options.info ?? { name: "junctor", title: "Junctor", version: packageVersion };
    this.observer = options.observer;
    this.perCaller = toLiveLimits(() => config().perCaller);
    this.listenLimits = createListenLimits(this.perCaller, undefined, clock);
    this.results = { kept: new KeptResults({ clock }), ...(cluster && { elsewhere: resultsAt(cluster) }) };
    this.seen = new SeenCallers(() => clock.date());
    this.toPinnedJson = createPinnedJson(strong, hideStrong);
    this.logins = options.logins ?? { store: options.credentials ?? createMemoryStore() };
    this.onCredential = (server, event) =>
      recordCredential(current()?.chain.auditFile?.sink, server, event, clock);
    this.#isLocal = (server) => Object.hasOwn(local, server);
    const { idempotency } = first;
    this.keptCalls = idempotency === false ? undefined : keepCalls(idempotency, this);
    const uses = keepCalls(
      {
        ...(idempotency === false
          ? {}
          : defined({ file: idempotency.file && `${idempotency.file}.approvals` })),
        keepMs: useMs,
      },
      this,
    );
    this.approvalUses = uses;
    this.approvals = new Approvals({
      clock,
      uses,
      outlives: cluster !== undefined || (idempotency !== false && idempotency.file !== undefined),
      onEvent: (event) => recordApproval(current()?.chain.auditFile?.sink, event, clock),
      shared: cluster && { store: cluster.store, seal: this.seal },
    });
    const maxParkedPerCaller = (): number => this.perCaller.parked ?? 1024;
    this.ownsParking = shared === undefined;
    this.parking =
      shared?.parking ??
      new Parking({ clock, maxParkedPerCaller, at: cluster?.membership.id, ...options.parking });
    const isKnown: LinksOptions["isKnown"] = (caller) =>
      isProvable(config(), caller, (name) => this.barred.has(name));
    this.links =
      options.accounts === true ? new Links({ seal: this.seal, clock, ...first.http, isKnown }) : undefined;
    this.catalog = this.#createCatalog(config);
    this.rules = new RuleWatch(() => findRuleIssues(current(), this.fleet), this.log);
    const { memoryFolder: folder } = options;
    const { catalog, parking, log, hide, describeFailure, logins, links, onCredential } = this;
    this.fleet = new Fleet({
      catalog,
      parking,
      log,
      hide,
      describeFailure,
      clock,
      logins,
      links,
      cluster,
      onCredential,
      shared,
      local,
      memory:
        folder !== undefined && first.remember
          ? new ListMemory({ folder, hide: hideStrong, log, clock })
          : undefined,
      drafts: first.drafts,
      maxStarts: () => config().maxStarts,
      heldFd: options.heldFd,
      onServer: options.onServer,
      pins: () => current()?.pins,
      onChange: this.changes.report,
      onListed: () => this.rules.look(),
    });
    this.policyParts = {
      catalog,
      unnamed,
      clock,
      log,
      servers: () => this.fleet.servers,
      onRefused: (refused) => current()?.chain.recordRefusal(refused),
    };
  }

  /** The approved definitions by the lock of a config. */
  openPins(lock: GatewayConfig["lock"]): Pins | undefined {
    return openPins(lock, { log: this.log, toJson: this.toPinnedJson, isExempt: this.#isLocal });
  }

  #createCatalog(config: () => GatewayConfig): Catalog {
    return new Catalog({
      kindOf: (caller) => toCallerKind(caller, this.fleet.variety),
      separator: () => config().separator,
      reservedFor: () => this.current()?.policy.reservedFor ?? (() => undefined),
      onCollision: (collision) => {
        const { key: name, owner, others } = collision;
        this.log.warn({ name, owner, others }, describeCollision(collision));
      },
    });
  }
}

/** Calls with keys are noted on the store of the replicas, in a file, or in memory alone. */
function keepCalls(
  {
    file,
    maxBytes = 64 * 1024 * 1024,
    ...rest
  }: {
    readonly keepMs: number;
    readonly maxBytes?: number;
    readonly maxKeys?: number;
    readonly file?: string | undefined;
  },
  { clock, log, seal, cluster }: Pick<Runtime, "clock" | "log" | "seal" | "cluster">,
): KeptCalls & Disposable {
  const limits = { ...rest, maxBytes };
  const onWarning = (text: string, error?: unknown): void =>
    log.warn(error instanceof Error ? { error: error.message } : {}, text);
  const ledger =
    cluster !== undefined
      ? new SharedCalls({ cluster, seal, keepMs: limits.keepMs, clock, onWarning })
      : file === undefined
        ? undefined
        : openCallFile({ path: file, ...limits, clock, onWarning });
  const kept = new KeptCalls({ ...limits, clock, ledger });
  return Object.assign(kept, { [Symbol.dispose]: () => ledger?.[Symbol.dispose]() });
}

/** Who was asked about a call, and what the answer was, in the audit file. */
function recordApproval(sink: AuditSink | undefined, event: ApprovalEvent, clock: Clock): void {
  const { kind, id, name, server, caller, rule, argumentsDigest, by } = event;
  const record = {
    time: dateOf(clock.now(), clock),
    call: id,
    trace: undefined,
    caller,
    rule,
    server: server ?? "gateway",
    kind: "event",
    tool: `approval.${kind}`,
    era: undefined,
    revision: undefined,
    argumentsDigest,
    outcome: kind === "denied" ? "refused" : "ok",
    reason: [name, ...(by === undefined ? [] : [`by ${by}`])].join(", "),
    code: undefined,
    delivery: undefined,
    bytesSent: 0,
    bytesReceived: 0,
    durationMs: 0,
  } as const;
  // The records of calls report that records cannot be written.
  void Promise.resolve(sink?.(record)).catch(() => {});
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
