import { andThen, type Awaitable } from "@junctor/core/async";
import { anyone, type Collision, describeCollision, allowAll, type View } from "@junctor/core/compose";
import type { Caller } from "@junctor/core/mcp";
import type { Authenticated } from "@junctor/server";
import type { Approval } from "../approvals/index.ts";
import type { ParkedCallStatus } from "../bridge/index.ts";
import { SharedRevocations } from "../cluster/index.ts";
import type { ServerConfig } from "../config/index.ts";
import { hideInData } from "../log/index.ts";
import {
  type GatewayServer,
  describeDisabled,
  describeStatus,
  type ListedCounts,
  type ServerStatus,
} from "../servers/index.ts";
import type { Health } from "../upstream/index.ts";
import { type Fleet, retireMs } from "./fleet.ts";
import type { Generation } from "./generation.ts";
import type { Runtime } from "./runtime.ts";

/** What the admin API shows of a server beside its status. */
export interface ServerFacts {
  readonly name: string;
  readonly config: ServerConfig;
  readonly health: Health;
  readonly inFlight: number;
  /** See {@link Words.progress}. */
  readonly progress: number;
  /** Whether it is a provider of this process, which cannot be stopped. */
  readonly isLocal: boolean;
}

/** The gateway for the person who runs it. */
export interface GatewayControls {
  /** The status of every server. */
  status(): readonly ServerStatus[];
  servers(): readonly ServerFacts[];
  /** A server by its name; undefined when there is no such server. */
  server(name: string): ServerFacts | undefined;
  /** Whether arguments and results of a server are kept in memory. Asked for each call. */
  isRecorded(server: string): boolean;
  /** Restarts a server; resolves when it is up or has failed once, with false if there is no such server. */
  restart(server: string): Promise<boolean>;
  /** Ends a server until it is restarted; false if there is no such server. */
  stop(server: string): Promise<boolean>;
  /** What a caller may see and use; everything without one. */
  view(caller: string | undefined): View;
  collisions(): readonly (Collision & { readonly advice: string })[];
  /** The names of the callers that the config knows, and of those that came in lately by a token or a certificate. */
  callers(): readonly string[];
  /** What the token or certificate of such a caller proved; undefined for others. */
  identityOf(caller: string): Caller | undefined;
  /** Whether callers have to say who they are. */
  needsProof(): boolean;
  /** A caller was let in. */
  admitted(caller: Caller): void;
  parked(): readonly ParkedCallStatus[];
  /** Refuses a caller from now on and ends all it has open, or lets it in again; at all replicas, where there are several. */
  revoke(caller: string): void;
  restore(caller: string): void;
  isRevoked(caller: string): boolean;
  /** The calls that wait for the operator, and the answer to one, for as many equal calls as the person saw. */
  approvals(): readonly Approval[];
  answerApproval(id: string, isYes: boolean, calls?: number): Approval;
  /** Takes out of JSON text what the config hides and redacts. `null` when that cannot be done. */
  redact(json: string): string;
}

/** How long a restart may take before it is answered; after that the start continues. */
const restartMs = 20_000;

/** `revoke` ends all that a caller has open. Disposing the controls ends the exchange with other replicas. */
export function createControls(
  { fleet, parking, catalog, hide, cluster, clock, log, barred, seen, approvals }: Runtime,
  current: () => Generation,
  revoke: (caller: string) => void,
): GatewayControls & Disposable {
  const bar = (caller: string, isRevoked: boolean): void => {
    if (!isRevoked) return void barred.delete(caller);
    barred.add(caller);
    revoke(caller);
  };
  const onWarning = (text: string, error: unknown): void => log.warn({ error: String(error) }, text);
  const others = cluster && new SharedRevocations({ store: cluster.store, clock, onChange: bar, onWarning });
  const change = (caller: string, isRevoked: boolean): void => {
    bar(caller, isRevoked);
    void others?.change(caller, isRevoked);
  };
  const viewOfAll = (): View => catalog.viewFor(anyone, allowAll);
  return {
    status: () => {
      const { policy, pins, config } = current();
      const counts = countListed(policy.generalView());
      const used = fleet.servers.map((server) =>
        describeStatus(server, clock.now(), counts.get(server.config.name) ?? nothingCounted, pins),
      );
      return [...used, ...config.disabled.map(describeDisabled)].map((status) =>
        hideInData(status, (json) => hide(json, status.name)),
      );
    },
    servers: () => fleet.servers.map((server) => toFacts(server, fleet)),
    server: (name) => {
      const found = fleet.serverNamed(name);
      return found && toFacts(found, fleet);
    },
    isRecorded: (name) => fleet.serverNamed(name)?.config.record === true,
    restart: async (server) => {
      if (!fleet.upstreams.has(server) && fleet.perCaller.get(server) === undefined) return false;
      const { config, naming } = current();
      await fleet.setServers(config.servers, naming, () => restartMs, server);
      return true;
    },
    stop: async (server) => {
      const upstream = fleet.upstreams.get(server);
      await upstream?.retire(retireMs);
      return upstream !== undefined;
    },
    view: (caller) =>
      caller === undefined
        ? viewOfAll()
        : current().policy.viewFor({ ...anyone, caller, identity: seen.find(caller) }),
    collisions: () =>
      catalog
        .snapshotFor(anyone)
        .collisions.map((collision) => ({ ...collision, advice: describeCollision(collision) })),
    callers: () => {
      const known = current().config.keys.map(({ name }) => name);
      return [...known, ...seen.names().filter((name) => !known.includes(name))];
    },
    identityOf: (caller) => seen.find(caller),
    needsProof: () => !current().policy.isOpen,
    admitted: (caller) => seen.note(caller),
    parked: () => parking.list(),
    approvals: () => approvals.list(),
    answerApproval: (id, isYes, calls) =>
      approvals.answer(id, isYes ? "approved" : "denied", "operator", calls),
    revoke: (caller) => change(caller, true),
    restore: (caller) => change(caller, false),
    isRevoked: (caller) => barred.has(caller),
    redact: (json) => {
      try {
        return hide(current().chain.redactText(json) ?? "null");
      } catch {
        return "null"; // A pattern took a quote or a bracket with it.
      }
    },
    [Symbol.dispose]: () => others?.[Symbol.dispose](),
  };
}

const nothingCounted: ListedCounts = { tools: 0, resources: 0, prompts: 0 };

/** How many things of each server are in the lists of a view, which leave out what is denied, hidden, not approved or another's by name. */
function countListed(view: View): ReadonlyMap<string, ListedCounts> {
  const counts = new Map<string, ListedCounts>();
  const count = (server: string | undefined, kind: keyof ListedCounts): void => {
    if (server === undefined) return;
    const counted = counts.get(server) ?? nothingCounted;
    counts.set(server, { ...counted, [kind]: counted[kind] + 1 });
  };
  for (const { server } of view.toolClaims.values()) count(server, "tools");
  for (const { server } of view.promptClaims.values()) count(server, "prompts");
  for (const { uri } of view.resources) count(view.resourceOwner(uri)?.server, "resources");
  for (const { uriTemplate } of view.templates) count(view.templateOwner(uriTemplate)?.server, "resources");
  return counts;
}

function toFacts({ config, health, words }: GatewayServer, { upstreams, perCaller }: Fleet): ServerFacts {
  const { name } = config;
  const upstream = upstreams.get(name);
  const isLocal = upstream === undefined && perCaller.get(name) === undefined;
  return {
    name,
    config,
    health,
    inFlight: upstream?.inFlight ?? 0,
    // A getter, because it looks at the processes of the server.
    get progress() {
      return words?.progress ?? 0;
    },
    isLocal,
  };
}

/** An authenticated sender; undefined, which refuses it, if it was revoked. */
export function withoutBarred(
  known: Awaitable<Authenticated>,
  { isRevoked, admitted }: Pick<GatewayControls, "isRevoked" | "admitted">,
): Awaitable<Authenticated> {
  return andThen(known, (sender) => {
    if (sender === undefined || typeof sender === "symbol") return sender;
    if (typeof sender === "object" && "refused" in sender) return sender;
    if (isRevoked(typeof sender === "string" ? sender : sender.name)) return undefined;
    if (typeof sender === "object") admitted(sender);
    return sender;
  });
}
