import { type ChildProcess, spawn as spawnProcess } from "node:child_process";
import { type Clock, settlesWithin, systemClock } from "../async/clock.ts";
import { ConnectError } from "../errors/connect-error.ts";
import type { Channel } from "../jsonrpc/channel.ts";
import type { StartProgress } from "../mcp/link.ts";
import { toChildEnv } from "./child-env.ts";
import { type Guardian, noGuardian } from "./guardian.ts";
import { killTree } from "./kill-tree.ts";
import { Pacer } from "./pacer.ts";
import { processorMsOf } from "./process-tree.ts";
import { createStreamChannel, type LineLimits } from "./stream-channel.ts";
import { TextTail } from "./text-tail.ts";

/** A program that speaks MCP on its standard input and output. */
export interface ChildCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables every child gets. */
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
}

export interface ChildOptions extends LineLimits {
  /** How long the child may take to leave: after the end of its input, and again after TERM. */
  readonly stageMs?: number;
  /** Told what the child writes to its standard error stream, as it comes. */
  readonly onStderr?: (chunk: Uint8Array) => void;
  /** Ends the child and its descendants when we are killed. Without one they live on. */
  readonly guardian?: Guardian;
  readonly clock?: Clock;
}

/** A child that runs. Its channel is closed by disposing it, which also ends the child and all its descendants. */
export interface Child extends AsyncDisposable {
  readonly channel: Channel;
  readonly pid: number | undefined;
  /** How much it wrote to its standard error stream, and how much processor time it used. */
  progress(): StartProgress;
  /** Resolves with how it ended, in words. */
  readonly exited: Promise<string>;
  /** Resolves when it has ended and all it wrote has been read. */
  readonly ended: Promise<void>;
  /** The end of what it wrote to its standard error stream. */
  readonly stderr: string;
}

/**
 * Starts a program in a process group of its own, without a shell. Rejects with a `ConnectError` when it cannot be
 * started. Its standard error is read all the time, because a pipe nobody reads would stop the child, but not as fast as it
 * can write.
 */
export async function spawnChild(command: ChildCommand, options: ChildOptions = {}): Promise<Child> {
  const { stageMs = 2000, clock = systemClock, guardian = noGuardian, onStderr } = options;
  const name = describeCommand(command);
  const spawn = await loadSpawn();
  const start = (mark: { readonly [name: string]: string }): ChildProcess =>
    spawn(command.command, [...(command.args ?? [])], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...toChildEnv(process.env, command.env ?? {}, process.platform), ...mark },
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
      // Windows has no process groups; there the tree is found by parentage when it is ended.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
  const { child, release } = guardian.watch(start);
  const { stdin, stdout, stderr } = child;
  await started(child, name, command);
  if (stdin === null || stdout === null || stderr === null) throw new ConnectError(name, "it has no pipes");
  const tail = new TextTail(16 * 1024);
  const pacer = new Pacer({
    ...talk,
    clock,
    pause: () => stderr.pause(),
    resume: () => stderr.resume(),
  });
  let stderrBytes = 0;
  stderr.on("data", (chunk: Uint8Array) => {
    stderrBytes += chunk.length;
    tail.push(chunk);
    onStderr?.(chunk);
    pacer.charge(chunk.length);
  });
  stderr.on("error", () => {}); // Its end is not interesting; the child's is.
  const exited = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve(signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`),
    );
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  // Whatever the child started goes with it, also when it ends by itself.
  const forget = killOnExit(child.pid);
  void exited.then(() => {
    pacer.free(); // Its last words are wanted now.
    forget();
    killTree(child.pid, "SIGKILL");
    release();
  });
  const channel = createStreamChannel(stdout, stdin, options);

  const close = async (): Promise<void> => {
    // A child that does not read keeps us here no longer than one that does not leave.
    void channel.endOutput();
    if (!(await settlesWithin(exited, stageMs, clock))) {
      killTree(child.pid, "SIGTERM");
      if (!(await settlesWithin(exited, stageMs, clock))) killTree(child.pid, "SIGKILL");
    }
    // Nothing survives KILL but what the kernel holds on to; that is not waited for.
    await settlesWithin(exited, stageMs, clock);
    stdout.destroy();
    stderr.destroy();
    stdin.destroy();
  };
  let closing: Promise<void> | undefined;
  const dispose = (): Promise<void> => (closing ??= close());
  return {
    channel: {
      ...channel,
      [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator](),
      [Symbol.asyncDispose]: dispose,
    },
    pid: child.pid,
    progress: () => ({
      stderrBytes,
      processorMs: child.pid === undefined ? 0 : (processorMsOf(child.pid) ?? 0),
    }),
    exited,
    ended,
    get stderr() {
      return tail.text;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** Windows alone needs help with scripts and quoting; elsewhere cross-spawn does what Node does, and takes 12 ms to load. */
async function loadSpawn(): Promise<typeof spawnProcess> {
  return process.platform === "win32" ? (await import("cross-spawn")).default.spawn : spawnProcess;
}

/** How much a child may say on its standard error stream before it has to wait for us. */
const talk = { burstBytes: 1024 * 1024, bytesPerSecond: 256 * 1024 };

/** The command as a person would type it. */
export function describeCommand({ command, args = [] }: ChildCommand): string {
  return [command, ...args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(" ");
}

function started(child: ChildProcess, name: string, command: ChildCommand): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error: NodeJS.ErrnoException) => {
      const reason =
        error.code === "ENOENT"
          ? `there is no program ${JSON.stringify(command.command)} here, or no such folder to run it in`
          : error.message;
      reject(new ConnectError(name, reason, { cause: error }));
    });
  });
}

/** Children that run. Being in groups of their own, they would not notice that we ended. */
const running = new Set<number>();
const killAll = (): void => running.forEach((pid) => killTree(pid, "SIGTERM"));

function killOnExit(pid: number | undefined): () => void {
  if (pid === undefined) return () => {};
  if (running.size === 0) process.on("exit", killAll);
  running.add(pid);
  return () => {
    running.delete(pid);
    if (running.size === 0) process.off("exit", killAll);
  };
}
