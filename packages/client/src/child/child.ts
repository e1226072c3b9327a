import { Buffer } from "node:buffer";
import { type ChildProcess, spawn as spawnProcess } from "node:child_process";
import type { Readable } from "node:stream";
import { type Clock, systemClock, timedOut, waitFor } from "@junctor/core/async";
import { Pacer, type LineLimits, createStreamChannel, TextTail } from "@junctor/core/channel";
import { ConnectError } from "@junctor/core/errors";
import type { StartProgress } from "@junctor/core/mcp";
import type { Channel } from "@junctor/core/rpc";
import { type ChildCommand, describeCommand, startChild } from "./child-command.ts";
import { toChildEnv } from "./child-env.ts";
import { type Guardian, noGuardian } from "./guardian.ts";
import { killTree, processorMsOf } from "./process-tree.ts";

interface ChildOptions extends LineLimits {
  /** How long the child may take to leave: after the end of its input, and again after TERM. */
  readonly stageMs?: number | undefined;
  /** Called with each piece that the child writes to its standard error stream. */
  readonly onStderr?: ((chunk: Uint8Array) => void) | undefined;
  /** Called with the first line on the child's standard output that is no message, cut to 200 characters. */
  readonly onStray?: ((line: string) => void) | undefined;
  /** Ends the child and its descendants when we are killed. Without one they live on. */
  readonly guardian?: Guardian | undefined;
  readonly clock?: Clock;
}

/** A child that runs. Its channel is closed by disposing it, which also ends the child and all its descendants. */
interface Child extends AsyncDisposable {
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
  /** The first line on its standard output that is no message; empty when there was none. */
  readonly stray: string;
}

/**
 * Starts a program in a process group of its own, without a shell. Rejects with a `ConnectError` when it cannot be
 * started. Its standard error is read all the time, because a full pipe would stop the child, but not as fast as it
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
  const { child, release } = await startChild(() => guardian.watch(start), command);
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new ConnectError(name, "it has no pipes");
  const tail = new TextTail(16 * 1024);
  const talking = readTalk(stderr, clock, (chunk) => {
    tail.push(chunk);
    onStderr?.(chunk);
  });
  const exited = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve(signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`),
    );
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  // Whatever the child started goes with it, also when it ends by itself.
  const forget = killOnExit(child.pid);
  void exited.then(() => {
    talking.free(); // Its last words are wanted now.
    forget();
    killTree(child.pid, "SIGKILL");
    release();
  });
  let stray = "";
  const onStray = (line: Uint8Array): void => {
    if (stray !== "") return;
    stray = toShortText(line);
    if (stray !== "") options.onStray?.(stray);
  };
  const channel = createStreamChannel(stdout, stdin, { maxSkippedBytes, ...options, onStray });
  let closing: Promise<void> | undefined;
  const dispose = (): Promise<void> =>
    (closing ??= endChild(
      child,
      () => channel.endOutput(),
      async () => {
        return (await waitFor(exited, { ms: stageMs, clock })) === timedOut;
      },
    ));
  return {
    channel: {
      ...channel,
      [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator](),
      [Symbol.asyncDispose]: dispose,
    },
    pid: child.pid,
    progress: () => ({
      stderrBytes: talking.bytes,
      processorMs: child.pid === undefined ? 0 : (processorMsOf(child.pid) ?? 0),
    }),
    exited,
    ended,
    get stderr() {
      return tail.text;
    },
    get stray() {
      return stray;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** Reads the standard error stream of a child all the time, but not as fast as the child can write. */
function readTalk(
  stderr: Readable,
  clock: Clock,
  take: (chunk: Uint8Array) => void,
): { readonly bytes: number; free(): void } {
  const pacer = new Pacer({
    ...talk,
    clock,
    pause: () => stderr.pause(),
    resume: () => stderr.resume(),
  });
  let bytes = 0;
  stderr.on("data", (chunk: Uint8Array) => {
    bytes += chunk.length;
    take(chunk);
    pacer.charge(chunk.length);
  });
  stderr.on("error", () => {}); // Its end is not interesting; the child's is.
  return {
    get bytes() {
      return bytes;
    },
    free: () => pacer.free(),
  };
}

/** Ends a child in stages: the end of its input, TERM, KILL. `staysOn` waits for one stage. */
async function endChild(
  child: ChildProcess,
  endInput: () => Promise<unknown>,
  staysOn: () => Promise<boolean>,
): Promise<void> {
  // A child that does not read keeps us here no longer than one that does not leave.
  void endInput();
  if (await staysOn()) {
    killTree(child.pid, "SIGTERM");
    if (await staysOn()) killTree(child.pid, "SIGKILL");
  }
  // Nothing survives KILL but what the kernel holds on to; that is not waited for.
  await staysOn();
  child.stdout?.destroy();
  child.stderr?.destroy();
  child.stdin?.destroy();
}

/** Windows alone needs help with scripts and quoting; elsewhere cross-spawn does what Node does, and takes 12 ms to load. */
async function loadSpawn(): Promise<typeof spawnProcess> {
  return process.platform === "win32" ? (await import("cross-spawn")).default.spawn : spawnProcess;
}

/** How much a child may say on its standard error stream before it has to wait for us. */
const talk = { burstBytes: 1024 * 1024, bytesPerSecond: 256 * 1024 };

/** A child that writes a longer line, beyond the longest message, is taken to write without end. It must be started again. */
const maxSkippedBytes = 32 * 1024 * 1024;

/** Longest piece of a stray line that is kept. */
const maxStrayLength = 200;

/** A line of a program as people may read it: without control characters, and not all of it when it is long. */
function toShortText(line: Uint8Array): string {
  const text = Buffer.from(line.subarray(0, 4 * maxStrayLength)).toString("utf8");
  // oxlint-disable-next-line no-control-regex
  const clean = text.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]|[\u0000-\u001f\u007f-\u009f]/g, "").trim();
  return clean.length > maxStrayLength ? `${clean.slice(0, maxStrayLength - 1)}…` : clean;
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
