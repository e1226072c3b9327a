import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { systemClock, waitFor } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import type { ServerStatus } from "../gateway/status.ts";
import { toChildEnv } from "../transports/child-env.ts";
import type { Complaint } from "./complaint.ts";
import { type FollowedConfig, toSnapshot } from "./follow-config.ts";
import { describeListening, describePages, describeServers } from "./greeting.ts";
import { untilSignal } from "./interrupt.ts";
import { openIpcLine } from "./ipc-line.ts";
import { createLog } from "./log.ts";
import { note } from "./print.ts";
import { followPlan } from "./reload-socket.ts";
import { readSecrets } from "./secrets.ts";
import { newAdminKey } from "./serve-admin.ts";
import type { ServePlan } from "./serve-plan.ts";
import { type SupervisedWorker, Supervisor } from "./supervisor.ts";
import {
  heldFd,
  type PrimaryMessage,
  type WorkerBegin,
  type WorkerEdit,
  type WorkerMessage,
} from "./worker-messages.ts";

/** Calls have 10 s, parked calls 10 minutes, and children a few seconds. */
const stopMs = 11 * 60_000;
/** How long children of workers that were killed may take to end. */
const lastMs = 5000;

/**
 * Serves with several processes. This one, the primary, serves no calls: it opens the port and deals out connections, replaces workers
 * that end, follows the config for all, and speaks with the person. Resolves with the exit code.
 */
export async function serveWithWorkers(plan: ServePlan, count: number): Promise<number> {
  const log = createLog(plan.level);
  const onWarning = (text: string): void => log.warn({}, text);
  const secrets = readSecrets({ env: process.env, served: plan.served, onWarning });
  const { hidden, forked } = splitEnvironment(process.env);
  const place = { count, primary: process.pid, adminKey: newAdminKey() };
  const asked = createDeferred<void>();
  const seen = createSights();
  const left = new Set<Promise<void>>();
  let current: WorkerEdit = { config: plan.config, keepsModules: false, agreed: toSnapshot(plan.config) };
  let followed: FollowedConfig | undefined;
  const begin = (number: number): WorkerBegin => {
    const { config, agreed } = current;
    const opened = plan.opened && { ...plan.opened, config };
    return { plan: { ...plan, opened, config }, agreed, place: { ...place, number }, secrets, env: hidden };
  };
  const answer = (number: number, message: WorkerMessage): unknown => {
    if (message.kind === "begin") return begin(number);
    if (message.kind === "agree") return followed?.agree(message.version);
    if (message.kind === "stop") return asked.resolve();
    return seen.take(number, message);
  };
  setUpCluster();
  const crew = new Supervisor({
    count,
    clock: systemClock,
    log,
    stopMs,
    start: (number) => {
      const worker = startWorker(forked, (message) => answer(number, message));
      left.add(worker.gone);
      void worker.gone.then(() => left.delete(worker.gone));
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
  void crew.allUp.then(() => seen.tell(plan, count));
  const failure = await Promise.race([signalled, asked.promise, crew.failed]);
  await crew.stop();
  await waitFor(Promise.all(left), { ms: lastMs });
  if (failure === undefined) return 0;
  await note(failure.text);
  return failure.exitCode;
}

/** The process is ours to end, and to speak with. */
interface WorkerProcess extends SupervisedWorker {
  /** Resolves when no process of it is left, its children included. */
  readonly gone: Promise<void>;
  /** Resolves with what is wrong; undefined when it uses the config, or is gone. */
  apply(edit: WorkerEdit): Promise<string | undefined>;
}

function setUpCluster(): void {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    exec: fileURLToPath(new URL("../cli/main.js", import.meta.url)),
    args: ["serve-worker"],
    // The last is for `heldFd`.
    stdio: ["ignore", "inherit", "inherit", "ipc", "pipe"],
  });
}

function startWorker(
  env: { readonly [name: string]: string | undefined },
  answer: (message: WorkerMessage) => unknown,
): WorkerProcess {
  const worker = cluster.fork(env);
  const up = createDeferred<void>();
  let complaint: Complaint | undefined;
  const line = openIpcLine<PrimaryMessage, WorkerMessage>(worker.process, (message) => {
    if (message.kind === "failed") complaint = message.complaint;
    const answered = answer(message);
    if (message.kind === "up") up.resolve();
    return answered;
  });
  const handedOver = watchHandOver(worker);
  const held = worker.process.stdio[heldFd] as Socket;
  const gone = new Promise<void>((resolve) => {
    held.on("error", () => {}).once("close", () => resolve());
  });
  held.resume();
  const ended = new Promise<string>((resolve) => {
    worker.process.once("error", (error) => resolve(error.message));
    worker.process.once("exit", (code, signal) => resolve(signal ?? `exit code ${code ?? "unknown"}`));
  });
  return {
    up: up.promise,
    gone,
    ended: ended.then((how) => {
      handedOver.close();
      return { how, complaint };
    }),
    stop: () => line.tell({ kind: "stop" }),
    kill: () => void worker.process.kill("SIGKILL"),
    apply: (edit) =>
      line.ask({ kind: "apply", edit }).then(
        (wrong) => wrong as string | undefined,
        () => undefined,
      ),
  };
}

/**
 * Node forgets a connection that it handed to a worker which ended before it took it: the client would wait for an answer for ever.
 * Each worker takes one at a time.
 */
function watchHandOver({ process: child }: Worker): { close(): void } {
  let last: object | undefined;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = (...args: unknown[]) => {
    const [, handle] = args;
    if (typeof handle === "object" && handle !== null && "close" in handle) last = handle;
    return send(...args);
  };
  return { close: () => (last as { close(): void } | undefined)?.close() };
}

/** Has all workers use a config. When some cannot, and others do, they are replaced by workers that begin with it. */
async function applyToAll(workers: readonly WorkerProcess[], edit: WorkerEdit): Promise<void> {
  const faults = await Promise.all(workers.map((worker) => worker.apply(edit)));
  const [fault] = faults;
  if (fault !== undefined && faults.every((each) => each !== undefined)) throw new Error(fault);
  for (const [index, worker] of workers.entries()) if (faults[index] !== undefined) worker.stop();
}

/** What workers report, until the person has seen it once. */
interface Sights {
  take(number: number, message: WorkerMessage): void;
  tell(plan: ServePlan, count: number): void;
}

function createSights(): Sights {
  const pages = new Map<number, string>();
  let url = "";
  let servers: readonly ServerStatus[] | undefined;
  let isTold = false;
  const tellServers = (): void => {
    if (!isTold || servers === undefined) return;
    process.stdout.write(describeServers(servers));
    isTold = false; // Once.
  };
  return {
    take: (number, message) => {
      if (message.kind === "up") {
        ({ url } = message);
        if (message.page !== undefined) pages.set(number, message.page);
      }
      if (message.kind !== "servers") return;
      servers ??= message.servers;
      tellServers();
    },
    tell: (plan, count) => {
      const sorted = [...pages].toSorted(([one], [other]) => one - other).map(([, page]) => page);
      process.stdout.write(describeListening(plan, url, count) + describePages(sorted));
      isTold = plan.opened !== undefined;
      tellServers();
    },
  };
}

/** Node and the system's loader read these before a worker can be told of them. */
const startVariables = new Set(
  "NODE_OPTIONS NODE_PATH NODE_COMPILE_CACHE NODE_V8_COVERAGE NODE_ICU_DATA OPENSSL_CONF UV_THREADPOOL_SIZE LD_LIBRARY_PATH LD_PRELOAD".split(
    " ",
  ),
);

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
