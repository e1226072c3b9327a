import cluster, { type Worker } from "node:cluster";
import { rmSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { toChildEnv } from "@junctor/client/internal";
import { type Clock, createDeferred, type Deferred, systemClock, waitFor } from "@junctor/core/async";
import {
  type ClusterStore,
  createMemoryClusterStore,
  openIpcChannel,
  serveStore,
} from "../../cluster/index.ts";
import type { GatewayLog } from "../../log/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import { readSecrets } from "../login/index.ts";
import { type Complaint, note, untilSignal } from "../terminal/index.ts";
import { type FollowedConfig, toSnapshot } from "./follow-config.ts";
import { describeListening, describePages, describeServers } from "./greeting.ts";
import { createLog } from "./log.ts";
import { followPlan } from "./reload-socket.ts";
import { newAdminKey } from "./serve-admin.ts";
import { assertClusterSecret, makeTrunkFolder, readReplicaSettings, trunkName } from "./serve-cluster.ts";
import type { ServePlan } from "./serve-plan.ts";
import {
  heldFd,
  type PrimaryMessage,
  type WorkerBegin,
  type WorkerEdit,
  type WorkerMessage,
} from "./worker-messages.ts";

/** How long workers may take to end, besides the time that parked calls have. */
const stopMs = 60_000;
/** How long children of workers that were killed may take to end. */
const lastMs = 5000;

/**
 * Serves with several processes. This one, the primary, serves no calls: it opens the port and deals out connections, replaces workers
 * that end, follows the config for all, and prints to the terminal. Resolves with the exit code.
 */
export async function serveWithWorkers(plan: ServePlan, count: number): Promise<number> {
  const log = createLog(plan.level);
  const onWarning = (text: string): void => log.warn({}, text);
  const secrets = readSecrets({ env: process.env, served: plan.served, onWarning });
  const env = splitEnvironment(process.env);
  const settings = readReplicaSettings(plan.config, process.env);
  assertClusterSecret(settings, process.env);
  // Workers with a store of their own are replicas like any other.
  const store = settings.store === undefined ? createMemoryClusterStore() : undefined;
  const folder = makeTrunkFolder();
  const removeFolder = (): void => rmSync(folder, { recursive: true, force: true });
  process.once("exit", removeFolder);
  const place = { count, primary: process.pid, adminKey: newAdminKey(), folder };
  const asked = createDeferred<void>();
  const report = createStartReport();
  const alive = new Set<Promise<void>>();
  let current: WorkerEdit = { config: plan.config, keepsModules: false, agreed: toSnapshot(plan.config) };
  let followed: FollowedConfig | undefined;
  const begin = (number: number): WorkerBegin => {
    const { config, agreed } = current;
    const opened = plan.opened && { ...plan.opened, config };
    return {
      plan: { ...plan, opened, config },
      agreed,
      place: { ...place, number },
      secrets,
      env: env.hidden,
    };
  };
  const answer = (number: number, message: WorkerMessage): unknown => {
    if (message.kind === "begin") return begin(number);
    if (message.kind === "agree") return followed?.agree(message.version);
    if (message.kind === "stop") return asked.resolve();
    return report.take(number, message);
  };
  setUpCluster();
  const dealer = new Dealer(systemClock);
  const crew = new Supervisor({
    count,
    clock: systemClock,
    log,
    stopMs: plan.config.drainMs + stopMs,
    start: (number) => {
      const worker = startWorker({ env, store, dealer, answer: (message) => answer(number, message) });
      alive.add(worker.gone);
      void worker.gone.then(() => {
        alive.delete(worker.gone);
        rmSync(join(folder, trunkName(worker.pid)), { force: true });
      });
      return worker;
    },
  });
  const apply = async (config: WorkerEdit["config"], keepsModules = false): Promise<void> => {
    const edit = { config, keepsModules, agreed: keepsModules ? current.agreed : toSnapshot(config) };
    await applyToAll(crew.running, edit);
    current = edit;
  };
  const agree = (): void => void followed?.agree();
  const signalled = untilSignal(() => (plan.opened === undefined ? undefined : agree));
  using following = await followPlan(plan, { apply }, log);
  followed = following;
  void crew.allUp.then(() => report.print(plan, count));
  const failure = await Promise.race([signalled, asked.promise, crew.failed]);
  await crew.stop();
  await waitFor(Promise.all(alive), { ms: lastMs });
  if (failure === undefined) return 0;
  await note(failure.text);
  return failure.exitCode;
}

/** Has all workers use a config. When some cannot, and others do, they are replaced by workers that begin with it. */
async function applyToAll(workers: readonly WorkerProcess[], edit: WorkerEdit): Promise<void> {
  const faults = await Promise.all(workers.map((worker) => worker.apply(edit)));
  const [fault] = faults;
  if (fault !== undefined && faults.every((each) => each !== undefined)) throw new Error(fault);
  for (const [index, worker] of workers.entries()) if (faults[index] !== undefined) worker.stop();
}

/** What workers report when they start, which is printed once. */
interface StartReport {
  take(number: number, message: WorkerMessage): void;
  print(plan: ServePlan, count: number): void;
}

function createStartReport(): StartReport {
  const pages = new Map<number, string>();
  let url = "";
  let servers: readonly ServerStatus[] | undefined;
  let isDue = false;
  const printServers = (): void => {
    if (!isDue || servers === undefined) return;
    process.stdout.write(describeServers(servers));
    isDue = false; // Once.
  };
  return {
    take: (number, message) => {
      if (message.kind === "up") {
        ({ url } = message);
        if (message.page !== undefined) pages.set(number, message.page);
      }
      if (message.kind !== "servers") return;
      servers ??= message.servers;
      printServers();
    },
    print: (plan, count) => {
      const sorted = [...pages].toSorted(([one], [other]) => one - other).map(([, page]) => page);
      process.stdout.write(describeListening(plan, url, count) + describePages(sorted));
      isDue = plan.opened !== undefined;
      printServers();
    },
  };
}

/** The process of a worker, as its primary controls it. */
interface WorkerProcess extends SupervisedWorker {
  readonly pid: number;
  /** Resolves when no process of it is left, its children included. */
  readonly gone: Promise<void>;
  /** Resolves with the fault; undefined when it uses the config, or is gone. */
  apply(edit: WorkerEdit): Promise<string | undefined>;
}

/** To be called before the first worker is started. */
function setUpCluster(): void {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    exec: fileURLToPath(new URL("../cli/main.js", import.meta.url)),
    args: ["serve-worker"],
    // The last is for `heldFd`.
    stdio: ["ignore", "inherit", "inherit", "ipc", "pipe"],
  });
}

interface WorkerStart {
  readonly env: SplitEnvironment;
  /** The store of this process; undefined when the workers have one of their own. */
  readonly store: ClusterStore | undefined;
  /** Says when the worker gets its next connection. */
  readonly dealer: Dealer;
  readonly answer: (message: WorkerMessage) => unknown;
}

/** Starts the process of a worker. */
function startWorker({ env, store, dealer, answer }: WorkerStart): WorkerProcess {
  const worker = cluster.fork(env.forked);
  const up = createDeferred<void>();
  let complaint: Complaint | undefined;
  const channel = openIpcChannel<PrimaryMessage, WorkerMessage>(worker.process, "worker", (message) => {
    if (message.kind === "failed") complaint = message.complaint;
    const answered = answer(message);
    if (message.kind === "up") up.resolve();
    return answered;
  });
  const served = store && serveStore(worker.process, store);
  const handedOver = watchHandOver(worker, dealer);
  const held = worker.process.stdio[heldFd] as Socket;
  const gone = new Promise<void>((resolve) => {
    held.on("error", () => {}).once("close", () => resolve());
  });
  held.resume();
  const ended = new Promise<string>((resolve) => {
    worker.process.once("error", (error) => resolve(error.message));
    worker.process.once("exit", (code, signal) => resolve(signal ?? `exit code ${code ?? "unknown"}`));
  });
  void Promise.all([ended, gone]).then(() => served?.release());
  return {
    pid: worker.process.pid ?? 0,
    up: up.promise,
    gone,
    ended: ended.then(async (how) => {
      handedOver.close();
      await served?.unregister();
      return { how, complaint };
    }),
    stop: () => channel.tell({ kind: "stop" }),
    kill: () => void worker.process.kill("SIGKILL"),
    apply: (edit) =>
      channel.ask({ kind: "apply", edit }).then(
        (wrong) => wrong as string | undefined,
        () => undefined,
      ),
  };
}

/**
 * Has the dealer say when a connection is handed to a worker. Node forgets a connection that it handed to a worker which ended before it
 * took it: the client would wait for an answer forever. Each worker takes one at a time.
 */
function watchHandOver({ process: child }: Worker, dealer: Dealer): { close(): void } {
  let last: { close(): void } | undefined;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (...args: unknown[]) => {
    const [, handle] = args;
    if (!isHandle(handle)) return send(...args);
    last = handle;
    onceClosed(handle, () => {
      if (last === handle) dealer.taken(child);
    });
    dealer.deal(child, () => {
      // A worker that is not connected has ended, and its connection is about to be closed.
      if (child.connected) send(...args);
    });
    return true;
  };
  return {
    close: () => {
      dealer.leave(child);
      last?.close();
    },
  };
}

function isHandle(sent: unknown): sent is { close(): void } {
  return typeof sent === "object" && sent !== null && "close" in sent;
}

/** Node closes the primary's copy of a connection when a worker took it, and then hands that worker the next, if there is one. */
function onceClosed(handle: { close(): void }, done: () => void): void {
  const close = handle.close.bind(handle);
  handle.close = () => {
    close();
    queueMicrotask(done);
  };
}

/** Node and the system's loader read these before a worker could set them. */
const startVariables = new Set(
  "NODE_OPTIONS NODE_PATH NODE_COMPILE_CACHE NODE_V8_COVERAGE NODE_ICU_DATA OPENSSL_CONF UV_THREADPOOL_SIZE LD_LIBRARY_PATH LD_PRELOAD".split(
    " ",
  ),
);

/** The variables of this process, as its workers get them. */
interface SplitEnvironment {
  /** For workers, by the channel to them. */
  readonly hidden: { readonly [name: string]: string };
  /** `hidden` without its values: they do not reach `/proc/PID/environ` of a worker, not for a moment. */
  readonly forked: { readonly [name: string]: undefined };
}

function splitEnvironment(env: NodeJS.ProcessEnv): SplitEnvironment {
  const shown = toChildEnv(env, {}, process.platform);
  const hidden: { [name: string]: string } = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !Object.hasOwn(shown, name) && !startVariables.has(name)) hidden[name] = value;
  return { hidden, forked: Object.fromEntries(Object.keys(hidden).map((name) => [name, undefined])) };
}

/** How a worker ended. */
export interface WorkerEnd {
  /** `exit code 1`, `SIGKILL`. */
  readonly how: string;
  /** Why it could not start, for the person who started the gateway. */
  readonly complaint?: Complaint | undefined;
}

/** A worker, as its supervisor sees it. */
export interface SupervisedWorker {
  /** Resolves when it serves. */
  readonly up: Promise<void>;
  /** Resolves when its process is gone. */
  readonly ended: Promise<WorkerEnd>;
  /** Asks it to finish its calls and end. */
  stop(): void;
  /** Ends it at once. */
  kill(): void;
}

interface SupervisorOptions<Worker> {
  readonly count: number;
  /** Starts the worker with this number, from 1 on. */
  readonly start: (number: number) => Worker;
  readonly clock: Clock;
  readonly log: GatewayLog;
  /** How long workers may take to end. */
  readonly stopMs: number;
}

/** One of the workers, which may be between two processes. */
interface WorkerSlot<Worker> {
  worker: Worker | undefined;
  isUp: boolean;
  /** How many of its processes ended soon after their start, one after the other. */
  quickEnds: number;
  /** Stops the timer of the next start, or of this one. */
  stopTimer: () => void;
}

/** A process that lived for less is started again with a delay, unless it is the first. */
const minLifeMs = 10_000;
const firstDelayMs = 200;
const maxDelayMs = 30_000;
/** How long a worker may take until it serves. */
const startMs = 60_000;
/** When this many workers ended and none ever served, none will. */
const maxFirstEnds = 5;

/**
 * Keeps a number of workers running. One that ends is replaced: at once, or with a growing delay when it ends soon after its start
 * again and again. While no worker ever came up, all are given up when one says why it cannot start, or when the fifth ends.
 */
export class Supervisor<Worker extends SupervisedWorker> {
  readonly #options: SupervisorOptions<Worker>;
  readonly #slots = new Map<number, WorkerSlot<Worker>>();
  readonly #allUp: Deferred<void> = createDeferred<void>();
  readonly #failed: Deferred<Complaint> = createDeferred<Complaint>();
  readonly #ended: Deferred<void> = createDeferred<void>();
  #hasServed = false;
  #firstEnds = 0;
  #isStopping = false;

  constructor(options: SupervisorOptions<Worker>) {
    this.#options = options;
    for (let number = 1; number <= options.count; number++)
      this.#slots.set(number, { worker: undefined, isUp: false, quickEnds: 0, stopTimer: () => {} });
    for (const [number, slot] of this.#slots) this.#start(number, slot);
  }

  /** Resolves when all workers are up for the first time. */
  get allUp(): Promise<void> {
    return this.#allUp.promise;
  }

  /** Resolves when the workers cannot start at all. They are being stopped then. */
  get failed(): Promise<Complaint> {
    return this.#failed.promise;
  }

  /** The workers that run or start now. */
  get running(): readonly Worker[] {
    return [...this.#slots.values()].flatMap(({ worker }) => worker ?? []);
  }

  /** Ends all workers, and resolves when they have ended. Those that take too long are killed. */
  async stop(): Promise<void> {
    const { clock, stopMs, log } = this.#options;
    if (!this.#isStopping) {
      this.#isStopping = true;
      for (const { stopTimer } of this.#slots.values()) stopTimer();
      for (const worker of this.running) worker.stop();
    }
    if (this.running.length === 0) return;
    const stopTimer = clock.timer(stopMs, () => {
      log.error({}, "workers did not end in time, and are killed");
      for (const worker of this.running) worker.kill();
    });
    await this.#ended.promise;
    stopTimer();
  }

  #start(number: number, slot: WorkerSlot<Worker>): void {
    const { clock, log } = this.#options;
    const worker = this.#options.start(number);
    const startedAt = clock.now();
    slot.worker = worker;
    slot.isUp = false;
    slot.stopTimer = clock.timer(startMs, () => {
      log.error({ worker: number }, "a worker did not start in time, and is killed");
      worker.kill();
    });
    void worker.up.then(() => {
      if (slot.worker !== worker) return;
      slot.stopTimer();
      slot.isUp = true;
      this.#hasServed = true;
      if ([...this.#slots.values()].every(({ isUp }) => isUp)) this.#allUp.resolve();
    });
    void worker.ended.then((end) => {
      slot.stopTimer();
      slot.worker = undefined;
      slot.isUp = false;
      if (this.#isStopping) {
        if (this.running.length === 0) this.#ended.resolve();
        return;
      }
      if (!this.#hasServed && (end.complaint !== undefined || ++this.#firstEnds >= maxFirstEnds))
        return this.#giveUp(end);
      slot.quickEnds = clock.now() - startedAt < minLifeMs ? slot.quickEnds + 1 : 0;
      const delayMs = toDelay(slot.quickEnds);
      const why = end.complaint === undefined ? {} : { error: end.complaint.text.trim() };
      log.error({ worker: number, how: end.how, delayMs, ...why }, "a worker ended, and is replaced");
      slot.stopTimer = clock.timer(delayMs, () => this.#start(number, slot));
    });
  }

  #giveUp({ how, complaint }: WorkerEnd): void {
    const text = `junctor: the workers end before they serve (${how})\n`;
    this.#failed.resolve(complaint ?? { text, exitCode: 3 });
    void this.stop();
  }
}

function toDelay(quickEnds: number): number {
  return quickEnds < 2 ? 0 : Math.min(maxDelayMs, firstDelayMs * 2 ** (quickEnds - 2));
}

/** How many connections a worker may be ahead of another. */
const maxLead = 2;

/** How long workers that are ahead wait for one that does not take its connection. */
const patienceMs = 100;

interface Hand {
  readonly worker: object;
  readonly give: () => void;
}

/**
 * Deals out new connections evenly. Node gives the next connection to whichever worker has taken its last one, so when many arrive at
 * once, the quickest workers would get most of them. Here a worker that was given two more than a worker that has yet to take one
 * waits for it, for 0.1 s at most. A stopped worker is waited for once, and again only after it took a connection. Closed
 * connections are not counted.
 */
export class Dealer {
  readonly #clock: Clock;
  readonly #given = new Map<object, number>();
  /** The workers that were given a connection and have not taken it yet. The others wait for them. */
  readonly #taking = new Set<object>();
  #held: readonly Hand[] = [];
  #stopTimer = (): void => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `give` at once, or when slower workers have caught up. Called again for a worker, it means that the worker has taken its last connection. */
  deal(worker: object, give: () => void): void {
    // A worker that is new, or was stopped, starts near the others: it does not get all the connections it missed.
    const most = Math.max(0, ...this.#given.values());
    this.#given.set(worker, Math.max(this.#given.get(worker) ?? 0, most - maxLead));
    this.#taking.delete(worker);
    // First, because the others in the queue may wait for this worker.
    this.#held = [{ worker, give }, ...this.#held];
    this.#giveAll();
  }

  /** The worker took what it was given, and there is no more for it. */
  taken(worker: object): void {
    this.#taking.delete(worker);
    this.#giveAll();
  }

  /** The worker is gone. It is given nothing that was held for it. */
  leave(worker: object): void {
    this.#given.delete(worker);
    this.#held = this.#held.filter((hand) => hand.worker !== worker);
    this.taken(worker);
  }

  #giveAll(): void {
    for (;;) {
      const next = this.#held.find(({ worker }) => this.#leadOf(worker) < maxLead);
      if (next === undefined) break;
      this.#held = this.#held.filter((hand) => hand !== next);
      this.#given.set(next.worker, (this.#given.get(next.worker) ?? 0) + 1);
      this.#taking.add(next.worker);
      next.give();
    }
    this.#stopTimer();
    if (this.#held.length === 0) return;
    this.#stopTimer = this.#clock.timer(patienceMs, () => {
      this.#taking.clear();
      this.#giveAll();
    });
  }

  #leadOf(worker: object): number {
    const slower = [...this.#taking].map((other) => this.#given.get(other) ?? 0);
    return (this.#given.get(worker) ?? 0) - Math.min(Infinity, ...slower);
  }
}
