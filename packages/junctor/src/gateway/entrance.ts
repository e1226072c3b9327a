import type { Clock } from "@junctor/core/async";
import { anyone, type Catalog, createComposition, type View } from "@junctor/core/compose";
import { NotFoundError } from "@junctor/core/errors";
import {
  type Caller,
  type Extensions,
  extensionIds,
  methods,
  type Seal,
  type Observer,
  type Server,
  type Implementation,
} from "@junctor/core/mcp";
import {
  type Change,
  type ChangeSource,
  type Middleware,
  type CallerInfo,
  latest,
  type Provider,
  withMiddleware,
} from "@junctor/core/provider";
import { createServer } from "@junctor/server";
import type { ListenLimits } from "@junctor/server/internal";
import { abandonedCall, notParked, isParkedState } from "../bridge/index.ts";
import { isOpen, type GatewayConfig } from "../config/index.ts";
import type { Pins } from "../lock/index.ts";
import { type GatewayLog, hideInData } from "../log/index.ts";
import { toNaming, withOpenedMethods } from "../policy/index.ts";
import { joinInstructions, offeredExtensions } from "../servers/index.ts";
import type { DescribeFailure } from "../upstream/index.ts";
import type { Fleet } from "./fleet.ts";
import { isKnownIn, noteList } from "./list-notes.ts";
import { createWaitingLog } from "./log-health.ts";
import type { MiddlewareChain } from "./middleware-chain.ts";
import { type CapParts, withServerCaps } from "./result-caps.ts";

/** The parts of a gateway that all of its entrances share. What an edit of the config replaces is looked up each time. */
export interface EntranceParts {
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  readonly changes: ChangeSource<Change>;
  readonly log: GatewayLog;
  readonly hide: (json: string) => string;
  /** How callers are told of a failure of a server. */
  readonly describeFailure: DescribeFailure;
  readonly clock: Clock;
  readonly seal: Seal;
  readonly info: Implementation;
  readonly listenLimits: ListenLimits;
  config(): GatewayConfig;
  pins(): Pins | undefined;
  chain(): MiddlewareChain;
  readonly observer: Observer | undefined;
  /** The rest of long results, for all entrances. */
  readonly results: CapParts["results"];
}

/** How one entrance differs from the others. */
interface EntranceOptions {
  /** The part of the catalog that each caller may use here. */
  readonly viewFor: (caller: CallerInfo) => View;
  /** The name of a mount: tokens that are sealed here open nowhere else. */
  readonly mount?: string;
  /** Puts around the middleware what follows the config as it does; by default caps of servers. */
  readonly around?: (provider: Provider) => Provider;
  /** Puts more around the provider, outside of all that. */
  readonly wrap?: (provider: Provider) => Provider;
  /** Text in place of the servers' own instructions, where there is one. */
  readonly instructions?: () => string | undefined;
}

/** One way in to the servers of a gateway. */
export interface Entrance {
  readonly provider: Provider;
  readonly server: Server;
  /** Replaces the middleware, after an edit of the config. */
  replace(middlewares: readonly Middleware[]): void;
}

/** Makes a view of the catalog a provider with the gateway's middleware around it, and that a server. */
export function createEntrance(parts: EntranceParts, options: EntranceOptions): Entrance {
  const { catalog, fleet, changes, log, hide, describeFailure, clock } = parts;
  const { viewFor, mount, wrap = (provider) => provider } = options;
  const composition = createComposition({
    catalog,
    viewFor,
    triesAll: false,
    onChange: changes.onChange,
    onWaiting: createWaitingLog(log),
    offers: (caller) => ({
      serves: (method) => methods.has(method),
      extensions: { ...offeredExtensions(fleet.servers, viewFor(caller)), ...ownExtensions },
    }),
    // Each key may see something else, so no list is for a cache that serves others.
    limitHints: (hints = { ttlMs: 0, cacheScope: "private" }) =>
      isOpen(parts.config()) ? hints : { ...hints, cacheScope: "private" },
    describeList: (part, view) => {
      const config = parts.config();
      const { disabled } = config;
      const naming = toNaming(config);
      const sources = {
        servers: fleet.servers,
        disabled,
        naming,
        clock,
        pins: parts.pins(),
        describeFailure,
      };
      return hideInData(noteList(part, view, sources), hide);
    },
    toMissing: (what, id, round) =>
      isParkedState(round?.state)
        ? abandonedCall(round.state.server, notParked)
        : new NotFoundError(what, id),
  });
  const base = withOpenedMethods(composition, { servers: () => fleet.servers, viewFor });
  const { around = (inner) => withServerCaps(inner, parts, mount) } = options;
  const guard = (middlewares: readonly Middleware[]): Provider => around(withMiddleware(base, middlewares));
  let guarded = guard(parts.chain().middlewares);
  const provider = wrap(latest(() => guarded));
  const ofServers = (caller: string | undefined, identity?: Caller): string | undefined => {
    const naming = toNaming(parts.config());
    const callerInfo = { ...anyone, caller, identity };
    const view = viewFor(callerInfo);
    const shared = fleet.servers.filter(({ config }) => fleet.upstreams.has(config.name));
    const used = [...shared, ...fleet.perCaller.upstreamsOf(callerInfo)];
    const known = used.filter(({ config }) => isKnownIn(view, config, naming));
    return parts.chain().redactText(joinInstructions(known, parts.pins()));
  };
  const instructions = (caller: string | undefined, identity?: Caller): string | undefined =>
    options.instructions?.() ?? ofServers(caller, identity);
  const server = createServer(
    provider,
    { ...parts.info, instructions },
    {
      seal: mount === undefined ? parts.seal : boundTo(mount, parts.seal),
      clock,
      onError: (error, method) => log.error({ method, error: String(error) }, "serving a request failed"),
      stateTtlMs,
      listenLimits: parts.listenLimits,
      passesOn: true,
      observer: parts.observer,
    },
  );
  return {
    provider,
    server: endingSessions(server, fleet),
    replace: (middlewares) => {
      guarded = guard(middlewares);
    },
  };
}

/** The extensions that a gateway has itself, whatever its servers have. */
const ownExtensions: Extensions = {
  [extensionIds.tasks]: {},
  [extensionIds.skills]: { directoryRead: true },
};

/**
 * How long what callers carry is good: much longer than a call is parked. A caller that comes back too late must hear that
 * its call had begun, which only a state that still opens can say.
 */
const stateTtlMs = 24 * 60 * 60_000;

/** A seal whose tokens open at one mount only. */
function boundTo(mount: string, { seal, open }: Seal): Seal {
  const bind = (binding: string): string => JSON.stringify(["mount", mount, binding]);
  return {
    seal: (payload, binding, ttlMs) => seal(payload, bind(binding), ttlMs),
    open: (token, binding) => open(token, bind(binding)),
  };
}

/** A server whose legacy sessions give back the connections they had to themselves. */
function endingSessions(server: Server, fleet: Fleet): Server {
  return {
    ...server,
    attach: (session, announce, caller) => {
      const detach = server.attach(session, announce, caller);
      return () => {
        detach();
        for (const { pool } of fleet.upstreams.values()) pool.sessionEnded(session);
        fleet.perCaller.sessionEnded(session);
      };
    },
  };
}
