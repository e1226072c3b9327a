import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import type { ChildCommand, Guardian } from "@junctor/client";
import { killTree, startChild, toChildEnv } from "@junctor/client/internal";
import { type Clock, timedOut, waitFor } from "@junctor/core/async";

interface RunOptions {
  readonly stdin: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly guardian: Guardian;
  readonly clock: Clock;
  /** Called with each line of the standard error stream. */
  readonly onLine: (line: string) => void;
}

/** How a command ended, and what it printed. */
interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  /** The limit that ended it, if one did. */
  readonly stopped: "output" | "time" | undefined;
}

/** The most bytes of the standard output. */
export const maxOutputBytes = 8 * 1024 * 1024;
/** How long a command may take to end after SIGTERM. */
const leaveMs = 2000;
/** How long the output of what a command left behind is read. */
const drainMs = 500;
/** A longer line of the standard error stream is cut. */
const maxLineBytes = 4096;

/**
 * Runs a program to its end, in a process group of its own and never by a shell: its words are its arguments, byte for byte. It and
 * all of its group are gone when this resolves. Rejects with a `ConnectError` when it cannot be started, and with the reason of the
 * signal.
 */
export async function runCommand(command: ChildCommand, options: RunOptions): Promise<CommandEnd> {
  const { stdin, signal, timeoutMs, guardian, clock } = options;
  signal.throwIfAborted();
  const { child, release } = await startChild(
    () =>
      guardian.watch((mark) =>
        spawn(command.command, [...(command.args ?? [])], {
          stdio: ["pipe", "pipe", "pipe"],
          env: { ...toChildEnv(process.env, command.env ?? {}, process.platform), ...mark },
          ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
          detached: process.platform !== "win32",
          windowsHide: true,
          shell: false,
        }),
      ),
    command,
  );
  let stopped: CommandEnd["stopped"];
  const exited = new Promise<Pick<CommandEnd, "code" | "signal">>((resolve) => {
    child.once("exit", (code, by) => resolve({ code, signal: by }));
  });
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = (why?: CommandEnd["stopped"]): void => {
    stopped ??= why;
    killTree(child.pid, "SIGTERM");
    void waitFor(exited, { ms: leaveMs, clock }).then((end) => {
      if (end === timedOut) killTree(child.pid, "SIGKILL");
    });
  };
  const stopTimer = clock.timer(timeoutMs, () => stop("time"));
  const onAbort = (): void => stop();
  signal.addEventListener("abort", onAbort, { once: true });
  const chunks: Buffer[] = [];
  let length = 0;
  child.stdout?.on("data", (chunk: Buffer) => {
    length += chunk.length;
    if (length <= maxOutputBytes) chunks.push(chunk);
    else if (stopped === undefined) stop("output");
  });
  if (child.stderr !== null) readLines(child.stderr, options.onLine);
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on("error", () => {}); // The exit of the child says enough.
  child.stdin?.end(stdin);
  try {
    const end = await exited;
    // What it left behind in its group goes with it; what left the group may hold the pipes open, and is not waited for.
    killTree(child.pid, "SIGKILL");
    await waitFor(closed, { ms: drainMs, clock });
    signal.throwIfAborted();
    return { ...end, stdout: Buffer.concat(chunks), stopped };
  } finally {
    stopTimer();
    signal.removeEventListener("abort", onAbort);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
    release();
  }
}

/** Lines end with a line feed, or with a carriage return as progress bars write them. */
function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = Buffer.alloc(0);
  const give = (line: Buffer): void => {
    const text = line.toString("utf8").trim();
    if (text !== "") onLine(text);
  };
  stream.on("data", (chunk: Buffer) => {
    let begin = 0;
    for (let index = 0; index < chunk.length; index++) {
      if (chunk[index] !== 10 && chunk[index] !== 13) continue;
      give(Buffer.concat([rest, chunk.subarray(begin, index)]).subarray(0, maxLineBytes));
      rest = Buffer.alloc(0);
      begin = index + 1;
    }
    rest = Buffer.concat([rest, chunk.subarray(begin)]).subarray(0, maxLineBytes);
  });
  stream.once("end", () => give(rest));
}
