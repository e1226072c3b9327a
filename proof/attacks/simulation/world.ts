import type { Client } from "../../../packages/client/src/client/client.ts";
import { createClient } from "../../../packages/client/src/client/client.ts";
import type { ConnectOptions } from "../../../packages/client/src/client/connect.ts";
import { createChannelLink } from "../../../packages/client/src/link/channel-link.ts";
import { ConnectError } from "../../../packages/core/src/errors/index.ts";
import { createSeal } from "../../../packages/core/src/mcp/seal.ts";
import { Parking } from "../../../packages/junctor/src/bridge/parking.ts";
import type { ServerConfig } from "../../../packages/junctor/src/config/config.ts";
import { parseConfigValue } from "../../../packages/junctor/src/config/parse-config.ts";
import {
  createVirtualClock,
  type VirtualClock,
} from "../../../packages/junctor/src/testing/virtual-clock.ts";
import { StartSlots } from "../../../packages/junctor/src/upstream/starts.ts";
import { Upstream } from "../../../packages/junctor/src/upstream/upstream.ts";
import { createMemoryEventStore, type EventStore } from "../../../packages/server/src/http/event-store.ts";
import { HttpHandler } from "../../../packages/server/src/http/handler.ts";
import { createServer } from "../../../packages/server/src/wire/server.ts";
import type { Chance } from "./chance.ts";
import { LegacyCaller } from "./legacy-caller.ts";
import { ModernCaller } from "./modern-caller.ts";
import { Network } from "./virtual-http.ts";
import { type ProcessOptions, type Sightings, VirtualProcess } from "./virtual-process.ts";

/** Limits of a world, small enough to be met. */
interface Limits {
  readonly maxParked: number;
  readonly maxParkedPerCaller: number;
  readonly maxSessions: number;
  /** Most processes that are alive at the same time. */
  readonly maxProcesses: number;
}

/** One server behind a gateway's parts, all of them real but the clock, the processes and the sockets. */
export class World {
  readonly clock: VirtualClock = createWorldClock();
  readonly chance: Chance;
  readonly limits: Limits;
  readonly sightings: Sightings = { begun: new Map() };
  readonly processes: VirtualProcess[] = [];
  readonly parking: Parking;
  readonly upstream: Upstream;
  readonly network: Network;
  readonly modern: readonly ModernCaller[];
  readonly legacy: readonly LegacyCaller[];
  readonly facts: string;
  /** What becomes of the next process. */
  nextStart: ProcessOptions["troubleAtStart"] | "fails" = "none";
  /** Told what happens, for a replay. */
  note: (text: string) => void = () => {};
  /** Streams of which events are stored. */
  readonly stored: Set<string> = new Set();
  readonly #handler: HttpHandler;
  readonly #era: "modern" | "legacy";

  constructor(chance: Chance) {
    this.chance = chance;
    const { clock } = this;
    this.#era = chance.percent(70) ? "legacy" : "modern";
    const config = chooseConfig(chance);
    const { sharing, maxConnections, instances } = config;
    this.limits = {
      maxParked: 2 + chance.below(5),
      maxParkedPerCaller: 1 + chance.below(4),
      maxSessions: 2 + chance.below(3),
      maxProcesses: sharing === "shared" ? Math.max(1, instances) : 1 + Math.max(maxConnections, instances),
    };
    const { maxParked, maxParkedPerCaller, maxSessions } = this.limits;
    this.parking = new Parking({
      clock,
      ttlMs: 30_000,
      keepMs: 5000,
      gatherMs: 30,
      maxParked,
      maxParkedPerCaller,
    });
    this.upstream = new Upstream({
      config,
      connect: (options) => this.#connect(options),
      parking: this.parking,
      slots: new StartSlots({ clock, maxStarts: () => 2 }),
      clock,
      firstListMs: () => 2000,
      report: () => {},
    });
    const seal = createSeal({ now: () => clock.now() });
    const inner = createServer(
      this.upstream,
      { name: "world", version: "1.0.0" },
      {
        seal,
        clock,
        passesOn: true,
        onError: (error) => this.network.faults.push(`serving failed: ${String(error)}`),
      },
    );
    const server = {
      ...inner,
      attach: (...given: Parameters<typeof inner.attach>) => {
        const detach = inner.attach(...given);
        return () => {
          detach();
          this.upstream.pool.sessionEnded(given[0]);
        };
      },
    };
    this.#handler = new HttpHandler(server, {
      seal,
      clock,
      maxSessions,
      sessionIdleMs: 20_000,
      events: this.#createStore(),
      authenticate: (header) => header("x-caller"),
      onWarning: (text, error) => {
        if (error !== undefined) this.network.faults.push(`${text}: ${(error as Error).message}`);
      },
    });
    this.network = new Network(this.#handler, clock);
    this.modern = [
      new ModernCaller("ada", this.network, true),
      new ModernCaller("bob", this.network, true),
      new ModernCaller("cyd", this.network, false),
    ];
    this.legacy = [new LegacyCaller("dan", this.network), new LegacyCaller("eve", this.network)];
    this.facts = `${this.#era} server, ${sharing}, ${maxConnections} processes, ${instances} instances, ${config.start}`;
    if (config.start === "eager") void this.upstream.start();
  }

  get alive(): readonly VirtualProcess[] {
    return this.processes.filter(({ isAlive }) => isAlive);
  }

  /** Ends everything, as a gateway that is stopped does. */
  async close(): Promise<void> {
    this.#handler.drain();
    this.#handler.close();
    await this.parking.close();
    await this.upstream[Symbol.asyncDispose]();
  }

  #createStore(): EventStore {
    const isTight = this.chance.percent(30);
    const store = createMemoryEventStore(
      isTight ? { maxStreamBytes: 600, maxTotalBytes: 1500, maxStreams: 4 } : {},
    );
    return {
      append: (stream, data) => {
        this.stored.add(stream);
        return store.append(stream, data);
      },
      after: (eventId) => store.after(eventId),
      forget: (stream) => {
        this.stored.delete(stream);
        return store.forget(stream);
      },
    };
  }

  async #connect(options: ConnectOptions): Promise<Client> {
    const { clock, chance, sightings } = this;
    const target = "a virtual process";
    return createClient(
      {
        target,
        cacheKey: undefined,
        isHttp: false,
        open: async (events) => {
          const troubleAtStart = this.nextStart;
          this.nextStart = "none";
          if (troubleAtStart === "fails") throw new ConnectError(target, "there is no such program");
          const number = this.processes.length;
          const note = (text: string): void => this.note(`process ${number}: ${text}`);
          const process = new VirtualProcess({
            era: this.#era,
            clock,
            chance,
            sightings,
            note,
            troubleAtStart,
          });
          this.processes.push(process);
          return createChannelLink(process.channel, { target, events, gone: process.exited, clock });
        },
      },
      options,
    );
  }
}

/** In a replay, timers that are left say where they were set. */
const origins = new Map<object, string>();

/** Where the timers that are left were set; only a replay knows. */
export function describeTimers(): string {
  return [...origins.values()].join("; ");
}

function createWorldClock(): VirtualClock {
  const clock = createVirtualClock(1_000_000_000);
  if (process.env["SCORECARD_REPLAY"] !== "yes") return clock;
  const { timer } = clock;
  clock.timer = (ms, callback) => {
    const key = {};
    origins.set(key, `${ms} ms ${new Error("set").stack ?? ""}`);
    const stop = timer(ms, () => {
      origins.delete(key);
      callback();
    });
    return () => {
      origins.delete(key);
      stop();
    };
  };
  return clock;
}

function chooseConfig(chance: Chance): ServerConfig {
  const sharing = chance.pick(["shared", "shared", "perSession", "exclusive"] as const);
  const isLazy = chance.percent(30);
  const own = {
    sharing,
    start: isLazy ? "lazy" : "eager",
    ...(isLazy ? { idleStopMs: 5000 } : {}),
    ...(sharing === "shared" ? { instances: 1 + chance.below(2) } : { maxConnections: 1 + chance.below(3) }),
    timeoutMs: 20_000,
    maxTotalMs: 60_000,
    startTimeoutMs: 5000,
    maxStartMs: 10_000,
    answerWithinMs: 5000,
  };
  const value = { mcpServers: { up: { command: "virtual" } }, junctor: { servers: { up: own } } };
  const [config] = parseConfigValue(value, { file: "virtual", env: {} }).servers;
  return config!;
}
