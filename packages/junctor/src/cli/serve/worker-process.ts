import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { toChildEnv } from "@junctor/client/internal";
import { createDeferred } from "@junctor/core/async";
import { openIpcChannel, serveStore, type ClusterStore } from "../../cluster/index.ts";
import { type Complaint } from "../terminal/index.ts";
import type { Dealer } from "./dealer.ts";
import type { SupervisedWorker } from "./supervisor.ts";
import { heldFd, type PrimaryMessage, type WorkerEdit, type WorkerMessage } from "./worker-messages.ts";

/** The process is ours to end, and to speak with. */
export interface WorkerProcess extends SupervisedWorker {
  readonly pid: number;
  /** Resolves when no process of it is left, its children included. */
  readonly gone: Promise<void>;
  /** Resolves with the fault; undefined when it uses the config, or is gone. */
  apply(edit: WorkerEdit): Promise<string | undefined>;
}

/** To be called before the first worker is started. */
export function setUpCluster(): void {
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
export function startWorker({ env, store, dealer, answer }: WorkerStart): WorkerProcess {
  const worker = cluster.fork(env.forked);
  const up = createDeferred<void>();
  let complaint: Complaint | undefined;
  const line = openIpcChannel<PrimaryMessage, WorkerMessage>(worker.process, "worker", (message) => {
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
 * Has the dealer say when a connection is handed to a worker. Node forgets a connection that it handed to a worker which ended before it
 * took it: the client would wait for an answer for ever. Each worker takes one at a time.
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
      // One that is not connected has ended, and its connection is about to be closed.
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

export function splitEnvironment(env: NodeJS.ProcessEnv): SplitEnvironment {
  const shown = toChildEnv(env, {}, process.platform);
  const hidden: { [name: string]: string } = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && !Object.hasOwn(shown, name) && !startVariables.has(name)) hidden[name] = value;
  return { hidden, forked: Object.fromEntries(Object.keys(hidden).map((name) => [name, undefined])) };
}
