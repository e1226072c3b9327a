import type { CallerLimits } from "@junctor/core/async";
import { anyone, type Collision } from "@junctor/core/compose";
import type { Server } from "@junctor/core/mcp";
import { assertKnownKeys } from "@junctor/core/options";
import type { Change, ChangeSource, Provider } from "@junctor/core/provider";
import { anybody, type Authenticate } from "@junctor/server";
import type { Mounts, Pages } from "@junctor/server/internal";
import { createConnections } from "../accounts/index.ts";
import { type Cluster, createConnectionServer } from "../cluster/index.ts";
import {
  type ConfigIssue,
  type GatewayConfig,
  isOpen,
  parseConfigValue,
  proofInOrOut,
  sourceOfFiles,
} from "../config/index.ts";
import { profileOfResults } from "../context/index.ts";
import { type ListedDefinitions, logDisabled, readDefinitions, type ServerStatus } from "../servers/index.ts";
import { type IssuerHealth, probeIssuers } from "../tokens/index.ts";
import { createControls, type GatewayControls, withoutBarred } from "./controls.ts";
import { createGeneration, Edits } from "./edits.ts";
import { Entrances } from "./entrances.ts";
import type { Generation } from "./generation.ts";
import { gatewayOptionKeys, type GatewayOptions, type StartOptions } from "./options.ts";
import { findRuleIssues, Runtime } from "./runtime.ts";

/**
 * Servers behind one endpoint. Disposing it gives up parked calls, ends every server and, with it, every process it
 * started.
 */
export interface Gateway extends AsyncDisposable {
  /** For `listenHttp`, `serveStdio` and the like. */
  readonly server: Server;
  /** The same as a provider, to compose or to wrap. */
  readonly provider: Provider;
  /** Tells callers by their keys and tokens, for `listenHttp`; undefined when the config has neither keys nor issuers. */
  readonly authenticate: Authenticate | undefined;
  /** The profiles of the config, for `listenHttp`. */
  readonly mounts: Mounts;
  /** The pages on which callers connect accounts of their own, for `listenHttp`. */
  readonly pages: Pages | undefined;
  /** Settles when every server that starts with the gateway is listed or has failed once, at the latest after `firstListMs`. */
  readonly ready: Promise<void>;
  /** The status of every server. */
  status(): readonly ServerStatus[];
  /**
   * How long a server takes to answer a request that gives it no work; undefined when it cannot be asked now, or does not
   * answer within `timeoutMs` (5 s).
   */
  measure(server: string, timeoutMs?: number): Promise<number | undefined>;
  /** Names that several servers claim, and who has them. */
  collisions(): readonly Collision[];
  /** Takes another config: only servers that are new, gone or changed are touched. Rejects, and changes nothing, if it is wrong. */
  update(config: object): Promise<void>;
  close(): Promise<void>;
}

/** A gateway that takes parsed configs. */
export interface RunningGateway extends Gateway {
  /** Like `authenticate`, but always there: it follows the config, and lets every caller in while callers need no proof. */
  readonly admit: Authenticate;
  /** What one caller may hold, as the config says at the moment; for a listener. */
  readonly perCaller: CallerLimits;
  /** Resolves when a server that starts with the gateway is up and listed, or has failed once. */
  untilKnown(server: string): Promise<void>;
  /** Takes another config. With `keepsModules`, which no person agreed to, modules and the lock stay as they are. */
  apply(config: GatewayConfig, keepsModules?: boolean): Promise<void>;
  /** The server of one profile, for a listener that serves it alone; undefined where the config has none of that name. */
  serverAt(name: string): Server | undefined;
  /** Rules of the config that match nothing, as far as the servers they may be about are listed. */
  unmatchedRules(): readonly ConfigIssue[];
  /** Asks each issuer of tokens for its metadata and keys; the reason is undefined for one that is fine. */
  probeIssuers(): Promise<readonly IssuerHealth[]>;
  /** What every server lists now, as a lock would have it. */
  definitions(): readonly ListedDefinitions[];
  readonly controls: GatewayControls;
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
  // The one reference that an edit replaces. Whatever follows from the config is reached through it.
  let generation: Generation;
  const current = (): Generation => generation;
  const runtime = new Runtime(first, options, current);
  generation = await createGeneration(first, runtime);
  logDisabled(runtime.log, first.disabled, []);
  const entrances = new Entrances(runtime, current);
  const revoke = (caller: string | undefined): void => {
    entrances.revoke(caller);
    connections?.revoke(caller);
    void runtime.parking.giveUpCaller(caller);
  };
  const controls = createControls(runtime, current, revoke);
  const { authenticate, admit } = createAdmission(current, controls);
  const connections = connectAccounts(runtime, current, admit);
  if (options.cluster !== undefined) joinReplicas(options.cluster, runtime, current);
  const firstListMs = (): number => options.firstListMs ?? generation.config.firstListMs;
  const opening = openServers(runtime, current, firstListMs, options.startsWhen);
  const waitMs = (): number => (opening.isDone ? Math.min(firstListMs(), addedListMs) : firstListMs());
  const replace = (next: Generation): void => void (generation = next);
  const edits = new Edits({ runtime, entrances, current, replace, revoke, waitMs });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= closeAll(runtime, current, controls, edits));
  return {
    controls,
    server: entrances.server,
    provider: entrances.provider,
    mounts: entrances,
    serverAt: (name) => entrances.serverAt(name),
    get authenticate() {
      return generation.policy.isOpen ? undefined : authenticate;
    },
    admit,
    perCaller: runtime.perCaller,
    pages: connections?.pages,
    ready: opening.ready,
    ...createReports(runtime, current, controls),
    update: async (given) => {
      const next = parse(given, options);
      if (isOpen(next) !== generation.policy.isOpen) throw proofInOrOut(runtime.file);
      await edits.apply(next);
      await runtime.fleet.untilRetired();
    },
    apply: (config, keepsModules) => edits.apply(config, keepsModules),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Callers already have lists, which must not wait long for a server that an edit of the config added. */
const addedListMs = 2000;

function createAdmission(
  current: () => Generation,
  controls: GatewayControls,
): {
  /** Finds a caller by its key, token or certificate, as the config at the moment has them. */
  readonly authenticate: Authenticate;
  /** Lets every caller in while callers need no proof; else authenticates, and refuses revoked callers. */
  readonly admit: Authenticate;
} {
  const now = (): Authenticate => current().policy.proof.authenticate;
  const answers: Required<Pick<Authenticate, "documentAt" | "challengeFor">> = {
    documentAt: (path, isServed) => now().documentAt?.(path, isServed),
    challengeFor: (scopes, path) => now().challengeFor?.(scopes, path) ?? "",
  };
  const authenticate: Authenticate = (header, request) => now()(header, request);
  const admit: Authenticate = (header, request) =>
    current().policy.isOpen ? anybody : withoutBarred(authenticate(header, request), controls);
  return { authenticate: Object.assign(authenticate, answers), admit: Object.assign(admit, answers) };
}

/** The pages on which callers connect accounts of their own; undefined where all callers are one person. */
function connectAccounts(
  runtime: Runtime,
  current: () => Generation,
  admit: Authenticate,
): ReturnType<typeof createConnections> | undefined {
  const { links, ...rest } = runtime;
  if (links === undefined) return undefined;
  return createConnections({ ...rest, links, admit, config: () => current().config });
}

/** Starts the servers of the first config. */
function openServers(
  { fleet, catalog, rules }: Runtime,
  current: () => Generation,
  firstListMs: () => number,
  startsWhen: Promise<void> | undefined,
): { readonly ready: Promise<void>; readonly isDone: boolean } {
  let isDone = false;
  const setServers = (): Promise<void> => {
    const { config, naming } = current();
    return fleet.setServers(config.servers, naming, firstListMs);
  };
  const started = startsWhen === undefined ? setServers() : startsWhen.then(setServers);
  const ready = started.then(() => {
    isDone = true;
    catalog.settle();
    rules.look();
  });
  return {
    ready,
    get isDone() {
      return isDone;
    },
  };
}

/** What a gateway reports of itself. */
function createReports(
  { fleet, catalog, toPinnedJson }: Runtime,
  current: () => Generation,
  controls: GatewayControls,
): Pick<
  RunningGateway,
  "status" | "measure" | "untilKnown" | "unmatchedRules" | "probeIssuers" | "definitions" | "collisions"
> {
  return {
    status: controls.status,
    measure: async (name, timeoutMs) => fleet.upstreams.get(name)?.measure(timeoutMs),
    untilKnown: async (name) => fleet.upstreams.get(name)?.start(),
    unmatchedRules: () => findRuleIssues(current(), fleet),
    probeIssuers: () => probeIssuers(current().policy.proof.tokens),
    definitions: () => readDefinitions(fleet.upstreams.values(), toPinnedJson),
    collisions: () => catalog.snapshotFor(anyone).collisions,
  };
}

async function closeAll(
  { parking, ownsParking, fleet, keptCalls, approvalUses }: Runtime,
  current: () => Generation,
  controls: Disposable,
  edits: Edits,
): Promise<void> {
  edits.close();
  controls[Symbol.dispose]();
  if (ownsParking) await parking.close();
  await fleet[Symbol.asyncDispose]();
  await current().chain[Symbol.asyncDispose]();
  keptCalls?.[Symbol.dispose]();
  approvalUses[Symbol.dispose]();
}

/** Makes the servers of a gateway known to its other replicas. */
function joinReplicas(
  cluster: Cluster,
  { fleet, changes, info, log }: Runtime,
  current: () => Generation,
): void {
  const servers = new WeakMap<object, Server>();
  const onError = (error: unknown, method: string): void =>
    log.error({ method, error: String(error) }, "serving another replica failed");
  cluster.trunk.serve({
    serverNamed: (name) => {
      const profile = profileOfResults(name);
      const found =
        profile === false
          ? (fleet.upstreams.get(name) ?? fleet.perCaller.get(name))
          : current().readers.get(profile);
      if (found === undefined) return undefined;
      let server = servers.get(found);
      if (server === undefined) {
        const provider =
          "config" in found
            ? toConnectionProvider(found.config.name, "provider" in found ? found.provider : found, changes)
            : found;
        servers.set(found, (server = createConnectionServer(provider, info, onError)));
      }
      return server;
    },
  });
}

/** A provider that reports the changes of its own server alone: `changes` has those of all servers. */
function toConnectionProvider(name: string, inner: Provider, changes: ChangeSource<Change>): Provider {
  return {
    list: (part, context) => inner.list(part, context),
    call: (operation, context) => inner.call(operation, context),
    ...(inner.watch === undefined ? {} : { watch: inner.watch.bind(inner) }),
    offers: (caller) => inner.offers(caller),
    onChange: (listener) =>
      changes.onChange((change) => {
        if (change.origin === name) listener(change);
      }),
  };
}
