import { lstatSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { join } from "node:path";
import { type Clock, createDeferred } from "@junctor/core/async";
import type { Server } from "@junctor/core/mcp";
import { serveStream } from "@junctor/server";
import {
  forgetStart,
  type GreetedFront,
  greetFront,
  type Introduction,
  type RunPlace,
} from "../attach/index.ts";
import { junctor } from "../invocation/index.ts";
import type { GatewayLog } from "../log/index.ts";
import type { ServerStatus } from "../servers/index.ts";
import type { SharedGateway, DaemonGateways } from "./gateways.ts";

interface DaemonOptions {
  /** Where fronts look for the daemon. Makes the folder and the key again when they were removed. */
  readonly openPlace: () => RunPlace;
  /** The absolute path of the config. */
  readonly file: string;
  readonly build: string;
  readonly gateways: DaemonGateways;
  /** Whether the config is served as it is now, with nothing of it waiting for a person. */
  readonly isCurrent: () => Promise<boolean>;
  readonly log: GatewayLog;
  readonly clock: Clock;
  /** The daemon ends after this time without a front; undefined: never. */
  readonly idleMs: number | undefined;
  /** Resolves when the process is asked to stop. */
  readonly stopped: Promise<unknown>;
  /** Called when no other daemon has the place: servers may be started. */
  readonly onClaimed: () => void;
}

/** The state of a daemon. */
export interface DaemonStatus {
  readonly pid: number;
  readonly build: string;
  readonly config: string;
  readonly startedAt: number;
  /** The admin page of the first of its gateways, with the key of this run; undefined while it has none. */
  readonly pageUrl?: string | undefined;
  readonly fronts: readonly DaemonFront[];
  readonly gateways: readonly {
    /** Undefined for fronts without a project. */
    readonly workspace: string | undefined;
    readonly fronts: number;
    readonly pageUrl?: string | undefined;
    readonly servers: readonly ServerStatus[];
  }[];
}

/** The servers that a front would get, as the control request `servers` reports them. */
export interface OfferedServers {
  readonly pid: number;
  readonly build: string;
  readonly isCurrent: boolean;
  readonly servers: readonly ServerStatus[];
}

/** How a server is in each gateway that has it, after the control request `restart`; and the names of all servers. */
export interface RestartedServer {
  readonly servers: readonly ServerStatus[];
  readonly names: readonly string[];
}

/** One client that is attached. */
interface DaemonFront extends Pick<Introduction, "client" | "profile" | "workspace" | "pid" | "build"> {
  readonly since: number;
}

/** How long calls may take to finish when the daemon ends or another replaces it. */
const drainMs = 30_000;
/** How often a blank line is written to a front whose client ended its input; see {@link knockAfterEnd}. */
const knockMs = 1000;
/** How long the other side may take to read an answer to a control request, or why it is refused. */
const lastWordsMs = 5000;
/** The most programs that have not proved themselves yet. */
const maxStrangers = 64;

/** Serves fronts until the daemon ends: it was idle for too long, another daemon replaced it, or it was asked to stop. */
export async function runDaemon(options: DaemonOptions): Promise<void> {
  await new Daemon(options).run();
}

/** Why a daemon ends, and the word that its fronts get. */
interface DaemonEnd {
  readonly why: string;
  readonly word: "drain" | "stop";
}

class Daemon {
  readonly #options: DaemonOptions;
  readonly #startedAt: number;
  readonly #fronts = new Map<Socket, DaemonFront>();
  /** Resolves when no other daemon has the place. Servers are started then, and fronts are served from then on. */
  readonly #claimed = createDeferred<void>();
  readonly #ended = createDeferred<DaemonEnd>();
  #place: RunPlace;
  #strangers = 0;
  #stopIdle: (() => void) | undefined;

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.#startedAt = options.clock.date();
    this.#place = options.openPlace();
  }

  async run(): Promise<void> {
    const { openPlace, file, build, gateways, log, clock, stopped, onClaimed } = this.#options;
    const claim = await claimSocket({
      openPlace: () => (this.#place = openPlace()),
      clock,
      onSocket: (socket) => this.#accept(socket),
      onReplaced: () => this.#end("another daemon took its place", "drain"),
    });
    void claim.settled.then(() => {
      onClaimed();
      this.#claimed.resolve();
    });
    void stopped.then(() => this.#end("it was asked to stop", "stop"));
    forgetStart(this.#place);
    this.#startIdleTimer();
    log.info({ socket: this.#place.socket, config: file, build }, "the daemon listens");
    const { why, word } = await this.#ended.promise;
    log.info({ fronts: this.#fronts.size }, `the daemon ends: ${why}`);
    this.#stopIdle?.();
    claim.release();
    await untilLeft(this.#fronts, word, clock);
    await gateways[Symbol.asyncDispose]();
    log.info({}, "the daemon has ended");
  }

  #end(why: string, word: DaemonEnd["word"]): void {
    this.#ended.resolve({ why, word });
  }

  /** Ends the daemon after a while without a front. */
  #startIdleTimer(): void {
    const { clock, idleMs } = this.#options;
    this.#stopIdle?.();
    if (idleMs !== undefined && this.#fronts.size === 0)
      this.#stopIdle = clock.timer(idleMs, () => this.#end("no client came", "stop"));
  }

  #accept(socket: Socket): void {
    const { log } = this.#options;
    socket.on("error", () => {}); // The front is gone.
    if (++this.#strangers > maxStrangers) {
      this.#strangers--;
      return void socket.destroy();
    }
    void this.#serve(socket)
      .catch((error: unknown) => log.warn({ error: String(error) }, "a client could not be served"))
      // The last words leave first, unless the other side does not take them.
      .finally(() => {
        socket.setTimeout(lastWordsMs, () => socket.destroy());
        socket.destroySoon();
      });
  }

  async #serve(socket: Socket): Promise<void> {
    const { build: ownBuild, gateways, log, clock } = this.#options;
    const front = await greetFront(socket, { key: this.#place.key, build: ownBuild }).finally(
      () => this.#strangers--,
    );
    const { introduction } = front;
    if (introduction.control !== undefined) return this.#control(front);
    const { client, profile, workspace, pid, build } = introduction;
    const facts = {
      pid,
      build,
      ...(client && { client }),
      ...(profile && { profile }),
      ...(workspace && { workspace }),
    };
    socket.once("close", () => this.#forget(socket));
    this.#fronts.set(socket, { ...facts, since: clock.date() });
    this.#stopIdle?.();
    try {
      await this.#claimed.promise;
      await serveFront(socket, front, gateways);
    } finally {
      this.#forget(socket);
      log.info(facts, "a client left");
    }
  }

  #forget(socket: Socket): void {
    if (this.#fronts.delete(socket)) this.#startIdleTimer();
  }

  /** Answers a request about the daemon itself. */
  async #control(front: GreetedFront): Promise<void> {
    const { control: request, server = "" } = front.introduction;
    switch (request) {
      case "status":
        return front.answer(await this.#status());
      case "servers":
        return this.#offer(front);
      case "restart":
        return front.answer((await this.#options.gateways.restart(server)) satisfies RestartedServer);
      default:
        front.answer(this.#own);
        if (request === "stop") this.#end(`${junctor("stop")} asked for it`, "stop");
    }
  }

  get #own(): { readonly pid: number; readonly build: string } {
    return { pid: process.pid, build: this.#options.build };
  }

  async #status(): Promise<DaemonStatus> {
    const { file } = this.#options;
    const gateways = (await this.#options.gateways.all()).map(
      ({ place: { workspace }, fronts: count, gateway, pageUrl }) => ({
        workspace,
        fronts: count,
        pageUrl,
        servers: gateway.status(),
      }),
    );
    const pageUrl = gateways.find((gateway) => gateway.pageUrl !== undefined)?.pageUrl;
    const fronts = [...this.#fronts.values()];
    return { ...this.#own, config: file, startedAt: this.#startedAt, pageUrl, fronts, gateways };
  }

  /** Answers with the servers that the front would get. */
  async #offer(front: GreetedFront): Promise<void> {
    await this.#claimed.promise;
    const taken = await takeGateway(front, this.#options.gateways);
    if (taken === undefined) return;
    const { gateway } = taken.shared;
    try {
      await gateway.ready;
      const isCurrent = await this.#options.isCurrent();
      front.answer({ ...this.#own, isCurrent, servers: gateway.status() } satisfies OfferedServers);
    } finally {
      taken.release();
    }
  }
}

/** The gateway for a front, with the values of its variables; undefined when the front was refused. */
async function takeGateway(
  front: GreetedFront,
  gateways: DaemonGateways,
): Promise<Awaited<ReturnType<DaemonGateways["take"]>> | undefined> {
  const env = await front.askFor(gateways.variables());
  const refuse = (error: unknown): undefined => {
    front.refuse(error instanceof Error ? error.message : String(error));
  };
  return gateways.take({ env, workspace: front.introduction.workspace }).catch(refuse);
}

/** Serves one front until it leaves. */
async function serveFront(socket: Socket, front: GreetedFront, gateways: DaemonGateways): Promise<void> {
  const { introduction } = front;
  const taken = await takeGateway(front, gateways);
  if (taken === undefined) return;
  try {
    const server = serverFor(taken.shared, introduction.profile);
    if (server === undefined)
      return front.refuse(`the config has no profile ${JSON.stringify(introduction.profile)}`);
    front.ready();
    const stopKnocking = knockAfterEnd(socket);
    const caller = callerOf(taken.shared, introduction);
    const gone = new AbortController();
    const unwatch = taken.shared.gateway.mounts.onGone?.((name) => {
      if (name === introduction.profile) gone.abort();
    });
    const { signal } = gone;
    await serveStream(server, socket, socket, {
      lingerMs,
      signal,
      ...(caller === undefined ? {} : { caller }),
    });
    unwatch?.();
    stopKnocking();
  } finally {
    taken.release();
  }
}

/** How long calls of a client that ended its input may take. */
const lingerMs = 60 * 60_000;

function serverFor({ gateway }: SharedGateway, profile: string | undefined): Server | undefined {
  return profile === undefined ? gateway.server : gateway.serverAt(profile);
}

/**
 * Each front is a caller of its own, so that processes for each session, limits and shares are its own. Where the config has keys,
 * names are those of keys, and a front is a trusted caller without a name, as on stdio.
 */
function callerOf({ config }: SharedGateway, { client = "client", id }: Introduction): string | undefined {
  return config.keys.length > 0
    ? undefined
    : `${client.replaceAll(/[^\w.-]/g, "_").slice(0, 32)}-${id.slice(0, 8)}`;
}

/**
 * A front whose client ended its input still reads the answers; one that was killed looks the same until something is written to
 * it. Both ignore blank lines.
 */
function knockAfterEnd(socket: Socket): () => void {
  let timer: NodeJS.Timeout | undefined;
  socket.once("end", () => {
    timer = setInterval(() => {
      if (socket.writable) socket.write("\n");
    }, knockMs);
  });
  return () => clearInterval(timer);
}

/** Tells the fronts that this daemon ends, and waits until they are gone, but not forever. */
async function untilLeft(fronts: Map<Socket, unknown>, word: string, clock: Clock): Promise<void> {
  for (const socket of fronts.keys()) socket.write(`{"junctor":"${word}"}\n`);
  const until = clock.now() + drainMs;
  while (fronts.size > 0 && clock.now() < until)
    await new Promise<void>((resolve) => void clock.timer(20, resolve));
  for (const socket of fronts.keys()) socket.destroy();
}

/** The place at which fronts find this daemon. */
interface SocketClaim {
  /** Resolves once no other daemon took the place within a moment; never when one did. */
  readonly settled: Promise<void>;
  /** Gives up the place, unless another daemon has it, and accepts no front from now on. */
  release(): void;
}

const firstLookMs = 100;
const lookMs = 1000;
/** More fronts wait in the system's queue. */
const maxFronts = 512;

/**
 * Takes the socket of a config. There is no lock that could be left behind: a daemon listens on a socket of its own, moves that
 * over the common name, and checks from time to time whether the name is still its own. Of several that start at once the last to
 * move its socket stays, and the others notice. A socket that was removed is made again. On Windows the first listener has the pipe.
 */
async function claimSocket(options: {
  /** Where fronts look; called before each claim, because the folder may have been removed. */
  readonly openPlace: () => RunPlace;
  readonly clock: Clock;
  readonly onSocket: (socket: Socket) => void;
  /** Another daemon has the socket now. */
  readonly onReplaced: () => void;
}): Promise<SocketClaim> {
  const { openPlace, clock, onSocket, onReplaced } = options;
  let place = openPlace();
  const servers: NetServer[] = [];
  let claims = 0;
  let ours: number | undefined;
  let isReleased = false;
  let stopTimer: (() => void) | undefined;

  const claim = async (): Promise<void> => {
    place = openPlace();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: false }, onSocket);
    server.maxConnections = maxFronts;
    servers.push(server);
    if (process.platform === "win32") return listen(server, place.socket);
    const own = join(place.folder, `s-${process.pid}-${claims++}.sock`);
    rmSync(own, { force: true });
    await listen(server, own);
    ours = lstatSync(own).ino;
    renameSync(own, place.socket);
  };
  const look = async (): Promise<boolean> => {
    if (process.platform === "win32") return true;
    const current = lstatSync(place.socket, { throwIfNoEntry: false });
    if (current === undefined && !isReleased) await claim().catch(() => {});
    else if (current !== undefined && current.ino !== ours) return false;
    return true;
  };
  const lookLater = (ms: number, settle?: () => void): void => {
    stopTimer = clock.timer(ms, () => {
      void look().then((isOurs) => {
        if (isReleased) return;
        if (!isOurs) return onReplaced();
        settle?.();
        lookLater(lookMs);
      });
    });
  };
  await claim();
  const settled = new Promise<void>((resolve) => lookLater(firstLookMs, resolve));
  return {
    settled,
    release: () => {
      if (isReleased) return;
      isReleased = true;
      stopTimer?.();
      const isOurs =
        process.platform !== "win32" && lstatSync(place.socket, { throwIfNoEntry: false })?.ino === ours;
      if (isOurs) rmSync(place.socket, { force: true });
      for (const server of servers) server.close();
    },
  };
}

function listen(server: NetServer, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", () => {}); // A front that left before it was accepted.
      resolve();
    });
  });
}
