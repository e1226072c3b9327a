import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { join, resolve } from "node:path";
import type { AdminLogLine, LogReport } from "../../admin/index.ts";
import { openRunPlace, type RunPlace, userConfig } from "../../attach/index.ts";
import { stateFolder } from "../../config/index.ts";
import { askAdmin, isAtLeast, readAdminEvents, toReadable } from "../serve/index.ts";
import {
  note,
  type ParsedOf,
  print,
  refuseOperands,
  type Run,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { findRunning, isDaemon, nothingRuns, onlyOne, type Running } from "./running.ts";

const levels = ["debug", "info", "warn", "error"];

/** `junctor logs` */
export const logs: Run<"logs"> = async (parsed) => {
  refuseOperands("logs", parsed);
  const level = parsed.flags.level ?? "debug";
  if (!levels.includes(level)) throw new UsageError(`--level needs one of ${levels.join(", ")}`);
  const chosen = await chooseLog(parsed);
  if (chosen.kind === "gateway") return showGatewayLog(chosen.processes, level, parsed);
  const follow = parsed.flags.follow ? watchInterrupt() : undefined;
  const shown = { level, isJson: parsed.flags.json, follows: follow?.signal };
  await showDaemonLog(chosen.place, shown);
  follow?.[Symbol.dispose]();
  return 0;
};

/** The log of what runs. When nothing runs, the log of the last daemon, which says why it ended. */
async function chooseLog(parsed: ParsedOf<"logs">): Promise<ChosenLog> {
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const processes = onlyOne(await findRunning(wanted));
  const [daemon] = processes.filter(isDaemon);
  if (daemon !== undefined) return daemon;
  if (processes.length > 0) return { kind: "gateway", processes: processes.filter(isGateway) };
  const place = openRunPlace(resolve(wanted.config ?? userConfig()));
  if (wanted.pid !== undefined || !existsSync(daemonLogOf(place))) throw nothingRuns(wanted);
  await note("junctor: no daemon runs; this is the log of the last one\n");
  return { kind: "daemon", place };
}

type GatewayProcess = Running & { readonly kind: "gateway" };

type ChosenLog =
  | { readonly kind: "daemon"; readonly place: RunPlace }
  | { readonly kind: "gateway"; readonly processes: readonly GatewayProcess[] };

function isGateway(running: Running): running is GatewayProcess {
  return running.kind === "gateway";
}

async function showGatewayLog(
  processes: readonly GatewayProcess[],
  level: string,
  parsed: ParsedOf<"logs">,
): Promise<number> {
  const show = (line: AdminLogLine): string =>
    parsed.flags.json ? `${JSON.stringify(line)}\n` : toText(line);
  const printLines = async (lines: readonly AdminLogLine[]): Promise<void> => {
    const inOrder = lines.toSorted((one, other) => one.at - other.at);
    await print(inOrder.map(show).join(""));
  };
  if (!parsed.flags.follow) {
    const all = await Promise.all(processes.map((one) => createReader(one, level)()));
    await printLines(all.flat());
    return 0;
  }
  using interruption = watchInterrupt();
  const { signal } = interruption;
  const follow = async (one: GatewayProcess): Promise<void> => {
    const read = createReader(one, level);
    // An event only says that there is more to read, so no line is missed or shown twice.
    const events = readAdminEvents(one.socket, "/api/events?only=log", signal);
    for await (const _event of events) await printLines(await read());
  };
  try {
    await Promise.all(processes.map(follow));
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return 0;
}

/** Reads the lines that were not read before, with the number of their worker. */
function createReader(
  { socket, status }: GatewayProcess,
  level: string,
): () => Promise<readonly AdminLogLine[]> {
  const worker = status.worker && { worker: status.worker.number };
  let last = 0;
  return async () => {
    const path = `/api/logs?level=${level}&limit=1000&after=${last}`;
    const { lines } = (await askAdmin(socket, "GET", path)) as LogReport;
    last = lines.at(-1)?.seq ?? last;
    return lines.map((line) => ({ ...line, facts: { ...worker, ...line.facts } }));
  };
}

/** `12:00:00 warn  github is down  reason="it ended"` */
function toText({ at, level, text, facts }: AdminLogLine): string {
  const clock = new Date(at).toISOString().slice(11, 19);
  const shown = Object.entries(facts).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${toSafeLine([clock, level.padEnd(5), text, ...shown].join(" "))}\n`;
}

/** The file that the daemon of a config logs to. */
export function daemonLogOf({ hash }: Pick<RunPlace, "hash">): string {
  return join(stateFolder(), "daemon", `${hash}.log`);
}

const maxLines = 200;
/** How much of the end of the log is read at first, and how much at most at once later. */
const maxBytes = 1024 * 1024;
const lookMs = 200;

/** Prints the last lines of a daemon's log; nothing when it has no log. */
export async function showDaemonLog(
  place: Pick<RunPlace, "hash">,
  {
    level,
    isJson,
    follows,
  }: {
    /** The least important lines to show; `debug` is all of them. */
    readonly level: string;
    readonly isJson: boolean;
    /** Shows the lines to come until this aborts. */
    readonly follows?: AbortSignal | undefined;
  },
): Promise<void> {
  const file = daemonLogOf(place);
  const printLines = async (lines: readonly string[]): Promise<void> => {
    const shown = lines.filter((line) => isAtLeast(line, level));
    await print(shown.map((line) => (isJson ? `${line}\n` : toReadable(line))).join(""));
  };
  let last = readFrom(file);
  await printLines(last?.lines.slice(-maxLines) ?? []);
  if (follows === undefined) return;
  while (!follows.aborted) {
    await untilLater(follows);
    const next = readFrom(file, last);
    await printLines(next?.lines ?? []);
    last = next ?? last;
  }
}

/** Lines of a file, and where the next begins. */
interface LogPart {
  readonly lines: readonly string[];
  readonly end: number;
  readonly inode: number;
}

/** The whole lines after `last`; without it, the last ones of the file. Undefined when there is no file. */
function readFrom(file: string, last?: LogPart): LogPart | undefined {
  let handle: number;
  try {
    handle = openSync(file, "r");
  } catch {
    return undefined;
  }
  try {
    const { size, ino: inode } = fstatSync(handle);
    // The daemon moves a log that is too large out of the way, and begins another.
    const known = last?.inode === inode && last.end <= size ? last.end : 0;
    const from = last === undefined ? Math.max(0, size - maxBytes) : known;
    const bytes = Buffer.alloc(Math.min(size - from, maxBytes));
    const read = readSync(handle, bytes, 0, bytes.length, from);
    const whole = bytes.subarray(0, read).lastIndexOf(0x0a) + 1;
    const lines = bytes.toString("utf8", 0, whole).split("\n").filter(Boolean);
    return { lines, end: from + whole, inode };
  } finally {
    closeSync(handle);
  }
}

function untilLater(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, lookMs);
    signal.addEventListener("abort", end);
  });
}
