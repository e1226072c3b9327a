import { andThen, type Awaitable, fromSignal, recover, settled } from "@junctor/core/async";
import { anyone } from "@junctor/core/compose";
import { NotFoundError } from "@junctor/core/errors";
import type { Caller, Seal, Server } from "@junctor/core/mcp";
import { emptyListing, findIn, type Notice, type Provider } from "@junctor/core/provider";
import { createServer } from "@junctor/server";
import type { Mounts } from "@junctor/server/internal";
import { joinInstructions } from "../servers/index.ts";
import type { Fleet } from "./fleet.ts";
import type { Generation } from "./generation.ts";
import { isKnownIn } from "./list-notes.ts";
import type { Runtime } from "./runtime.ts";

/** The server of one entrance. It keeps its sessions while one generation follows the other. */
interface OpenEntrance {
  readonly server: Server;
  readonly latest: Latest;
}

/** The ways in of a gateway, as servers: the gateway itself, its profiles, and each of its servers alone. */
export class Entrances implements Mounts {
  readonly #runtime: Runtime;
  readonly #current: () => Generation;
  /** The entrances that were asked for: most servers are never used alone. */
  readonly #open = new Map<string | undefined, OpenEntrance>();
  readonly #onGone = new Set<(name: string) => void>();
  readonly #onRevoked = new Set<(caller: string | undefined) => void>();
  /** The gateway itself. */
  readonly server: Server;
  /** The same as a provider. */
  readonly provider: Provider;

  constructor(runtime: Runtime, current: () => Generation) {
    this.#runtime = runtime;
    this.#current = current;
    const { server, latest } = this.#openAt(undefined);
    this.provider = latest.provider;
    this.server = {
      ...server,
      drain: () => {
        for (const entrance of this.#open.values()) entrance.server.drain();
      },
    };
  }

  at(name: string, caller: string | undefined): Server | undefined {
    return this.#current().policy.mayUse(name, caller) ? this.serverAt(name) : undefined;
  }

  /** The server of an entrance, for callers that may use it and for those that may not. */
  serverAt(name: string): Server | undefined {
    if (!this.#current().entrances.has(name)) return undefined;
    return (this.#open.get(name) ?? this.#openAt(name)).server;
  }

  boundTo(caller: string): readonly string[] | undefined {
    return this.#current().policy.boundTo(caller);
  }

  onGone(listener: (name: string) => void): () => void {
    return listen(this.#onGone, listener);
  }

  /** Switches to the generation that has just become the current one. Entrances that it no longer has end. */
  follow(): void {
    const { entrances } = this.#current();
    for (const [name, { server, latest }] of this.#open) {
      if (entrances.has(name)) {
        latest.follow();
        continue;
      }
      this.#open.delete(name);
      server.drain();
      if (name !== undefined) for (const listener of this.#onGone) listener(name);
    }
  }

  /** Ends all that transports have open for a caller. */
  revoke(caller: string | undefined): void {
    for (const listener of this.#onRevoked) listener(caller);
  }

  #openAt(name: string | undefined): OpenEntrance {
    const { log, seal, clock, info, listenLimits, observer, fleet } = this.#runtime;
    const latest = createLatest(() => this.#current().entrances.get(name) ?? goneProvider);
    const server = createServer(
      latest.provider,
      { ...info, instructions: (caller, identity) => this.#instructionsAt(name, caller, identity) },
      {
        seal: name === undefined ? seal : boundTo(name, seal),
        clock,
        onError: (error, method) => log.error({ method, error: String(error) }, "serving a request failed"),
        stateTtlMs,
        listenLimits,
        passesOn: true,
        observer,
      },
    );
    const open = {
      latest,
      server: {
        ...endingSessions(server, fleet),
        onRevoked: (listener: (caller: string | undefined) => void) => listen(this.#onRevoked, listener),
      },
    };
    this.#open.set(name, open);
    return open;
  }

  /** The text of the profile, else those of the servers that the caller may use here. */
  #instructionsAt(
    name: string | undefined,
    caller: string | undefined,
    identity: Caller | undefined,
  ): string | undefined {
    const { config, policy, naming, chain, pins } = this.#current();
    const profile = config.profiles.find((each) => each.name === name);
    if (profile?.instructions !== undefined) return profile.instructions;
    const { fleet } = this.#runtime;
    const callerInfo = { ...anyone, caller, identity };
    const view = (name === undefined ? policy.viewFor : policy.viewAt(name))(callerInfo);
    const shared = fleet.servers.filter((server) => fleet.upstreams.has(server.config.name));
    const used = [...shared, ...fleet.perCaller.upstreamsOf(callerInfo)];
    const known = used.filter((server) => isKnownIn(view, server.config, naming));
    return chain.redactText(joinInstructions(known, pins));
  }
}

/** Stands for an entrance that the config no longer has, until its sessions have ended. */
const goneProvider: Provider = {
  list: () => emptyListing,
  call: ({ name }) => {
    throw new NotFoundError("tool", name);
  },
  offers: () => ({ serves: () => true }),
};

/**
 * How long the state that callers carry is valid: much longer than a call is parked. A caller that comes back too late must learn that
 * its call had begun, which only a state that still opens can say.
 */
const stateTtlMs = 24 * 60 * 60_000;

/** A seal whose tokens open at one entrance only. */
function boundTo(name: string, { seal, open }: Seal): Seal {
  const bind = (binding: string): string => JSON.stringify(["mount", name, binding]);
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

/** Adds a listener until the returned function is called, also one that listens twice. */
function listen<T>(listeners: Set<(value: T) => void>, listener: (value: T) => void): () => void {
  const hear = (value: T): void => listener(value);
  listeners.add(hear);
  return () => void listeners.delete(hear);
}

/** Whichever provider is the current one. */
interface Latest {
  readonly provider: Provider;
  /** Called when another provider has become the current one: watches and listeners move to it. */
  follow(): void;
}

/**
 * The provider that `current` gives at the moment. A call ends where it began. A watch survives a swap; where the new provider refuses it,
 * its caller gets no notices until a later provider accepts it.
 */
export function createLatest(current: () => Provider): Latest {
  const followers = new Set<() => void>();
  return {
    provider: {
      list: (part, context) => current().list(part, context),
      call: (operation, context) => current().call(operation, context),
      find: (part, name, context) => findIn(current(), part, name, context),
      watch: (target, context, listener) => {
        const watch = new LatestWatch(
          (hear) => current().watch?.(target, context, hear) ?? (() => {}),
          listener,
        );
        const { cancellation = fromSignal(context.signal) } = context;
        const follow = (): void => watch.moveOn();
        const stop = (): void => {
          followers.delete(follow);
          cancellation.offAbort(stop);
          watch.stop();
        };
        followers.add(follow);
        cancellation.onAbort(stop);
        return recover(
          () => andThen(watch.begin(), () => stop),
          (error) => {
            stop();
            throw error;
          },
        );
      },
      offers: (caller) => current().offers(caller),
      onChange: (listener) => {
        let stop = current().onChange?.(listener);
        const follow = (): void => {
          const stopOld = stop;
          stop = current().onChange?.(listener);
          stopOld?.();
        };
        followers.add(follow);
        return () => {
          followers.delete(follow);
          stop?.();
        };
      },
    },
    follow: () => {
      for (const follow of followers) follow();
    },
  };
}

type Listener = (notice: Notice) => void;

/** The most notices that are held while a watch moves. */
const maxHeld = 256;

/**
 * One watch that moves from provider to provider. It begins at the new one before it ends at the old one, so a watch that callers share
 * never ends.
 */
class LatestWatch {
  readonly #watch: (listener: Listener) => Awaitable<() => void>;
  readonly #listener: Listener;
  #stopAtLast = (): void => {};
  #isOver = false;
  /** Counts the attempts to begin: an earlier one that takes longer is dropped. */
  #turn = 0;
  /** Notices since a swap, delivered when the new provider has accepted the watch. */
  #held: Notice[] | undefined;

  constructor(watch: (listener: Listener) => Awaitable<() => void>, listener: Listener) {
    this.#watch = watch;
    this.#listener = listener;
  }

  begin(): Awaitable<void> {
    const turn = ++this.#turn;
    const hear = (notice: Notice): void => {
      if (this.#held === undefined) this.#listener(notice);
      else if (this.#held.length < maxHeld) this.#held.push(notice);
    };
    return andThen(settled(this.#watch(hear)), (stop) => {
      if (this.#isOver || turn !== this.#turn) return stop();
      this.#stopAtLast();
      this.#stopAtLast = stop;
      const held = this.#held ?? [];
      this.#held = undefined;
      for (const notice of held) this.#listener(notice);
    });
  }

  moveOn(): void {
    this.#held = [];
    const turn = this.#turn + 1;
    void recover(
      () => this.begin(),
      () => {
        if (turn === this.#turn) this.#end();
      },
    );
  }

  stop(): void {
    this.#isOver = true;
    this.#end();
  }

  #end(): void {
    this.#stopAtLast();
    this.#stopAtLast = () => {};
  }
}
