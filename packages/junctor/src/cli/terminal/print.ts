import { Buffer } from "node:buffer";
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { toChildEnv } from "@junctor/client/internal";

/** Writes to the standard output and waits until it is out: `process.exit` would cut off what a pipe has not taken. */
export function print(text: string): Promise<void> {
  return writeAll(process.stdout, text);
}

/** The same for bytes that are not text. */
export function printBytes(bytes: Uint8Array): Promise<void> {
  return writeAll(process.stdout, bytes);
}

/** The same for people: notes, progress and complaints, which are not part of what a command gives. */
export function note(text: string): Promise<void> {
  return writeAll(process.stderr, text);
}

const watched = new WeakSet<NodeJS.WriteStream>();

function writeAll(stream: NodeJS.WriteStream, text: string | Uint8Array): Promise<void> {
  if (!watched.has(stream)) {
    watched.add(stream);
    // A reader that stopped reading (`| head`) is not a failure of ours.
    stream.on("error", () => {});
  }
  return new Promise((resolve) => {
    stream.write(text, () => resolve());
  });
}

/** The text of a thrown value, for logs. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error);
}

/**
 * Takes the variables that servers do not get out of `/proc/PID/environ`, where every program of the same user can read the environment
 * that this process was started with. `process.env` keeps all of them: they are copied to other memory first. The system shows the memory
 * it laid the variables out in at the start, so this overwrites that memory by `/proc/self/mem`; no call that Node offers does it, and
 * `delete process.env.NAME` does not. Returns what went wrong; undefined where there is no `/proc`.
 */
export function hideEnvironment(): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const { start, size } = findBlock();
    const memory = openSync("/proc/self/mem", "r+");
    try {
      const block = Buffer.alloc(size);
      readSync(memory, block, 0, size, start);
      hideIn(block);
      for (let at = 0; at < size;) at += writeSync(memory, block, at, size - at, start + at);
    } finally {
      closeSync(memory);
    }
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

/** Where the variables are: fields 50 and 51 of `/proc/self/stat`, counted after the name, which may contain anything. */
function findBlock(): { readonly start: number; readonly size: number } {
  const stat = readFileSync("/proc/self/stat", "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const start = Number(fields[47]);
  const end = Number(fields[48]);
  if (!(start > 0 && end >= start)) throw new Error("/proc/self/stat does not say where the variables are");
  return { start, size: end - start };
}

/** Replaces each `NAME=VALUE` that servers do not get by zeros. */
function hideIn(block: Buffer): void {
  const shown = toChildEnv(process.env, {}, process.platform);
  for (let at = 0; at < block.length;) {
    const zero = block.indexOf(0, at);
    const end = zero === -1 ? block.length : zero;
    const [name = ""] = block.toString("utf8", at, end).split("=", 1);
    if (!Object.hasOwn(shown, name)) {
      const value = process.env[name];
      // Setting it again, to the same value, copies it.
      if (name !== "" && value !== undefined) process.env[name] = value;
      block.fill(0, at, end);
    }
    at = end + 1;
  }
}

// C0 but tab and newline, DEL, C1, and the marks that make text run the other way (CVE-2021-42574).
// oxlint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * Text of a server as it may be shown on a terminal: without the control characters by which it could move the cursor,
 * rewrite what was shown, or set the clipboard.
 */
export function toSafeText(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(unsafe, "");
}

/** The same on one line. */
export function toSafeLine(text: string): string {
  return toSafeText(text).replaceAll(/\s+/g, " ").trim();
}

/** As much of a line as fits, with an ellipsis for the rest. */
export function clipLine(line: string, width: number): string {
  const letters = Array.from(line);
  return letters.length <= width ? line : `${letters.slice(0, Math.max(0, width - 1)).join("")}…`;
}

/** Rows of cells as lines of text, with the columns aligned. What comes from servers may not steer the terminal. */
export function toRows(rows: readonly (readonly string[])[]): readonly string[] {
  const safe = rows.map((row) => row.map(toSafeLine));
  const columns = Math.max(0, ...safe.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, index) =>
    Math.max(...safe.map((row) => row[index]?.length ?? 0)),
  );
  return safe.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** Asks for one line; undefined is the end of input. */
export type AskLine = (prompt: string) => Promise<string | undefined>;

/**
 * Prompts go to the standard error stream, so that the standard output holds the result alone. Lines that were typed, or
 * pasted, ahead of their questions wait for them.
 */
export async function withTerminal<T>(
  onInterrupt: () => void,
  signal: AbortSignal,
  work: (ask: AskLine) => Promise<T>,
): Promise<T> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr, terminal: true });
  const lines: string[] = [];
  const state = { isEnded: false, wake: (): void => {} };
  terminal.on("SIGINT", onInterrupt);
  terminal.on("line", (line) => {
    lines.push(line);
    state.wake();
  });
  terminal.on("close", () => {
    state.isEnded = true;
    state.wake();
  });
  const onAbort = (): void => terminal.close();
  signal.addEventListener("abort", onAbort, { once: true });
  const ask: AskLine = async (prompt) => {
    terminal.setPrompt(prompt);
    if (lines.length === 0 && !state.isEnded) terminal.prompt();
    while (lines.length === 0 && !state.isEnded)
      await new Promise<void>((resolve) => {
        state.wake = resolve;
      });
    signal.throwIfAborted();
    return lines.shift();
  };
  try {
    return await work(ask);
  } finally {
    signal.removeEventListener("abort", onAbort);
    terminal.close();
  }
}
