import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { openRunPlace, type RunPlace, userConfig } from "../front/run-folder.ts";
import { askAdmin, readAdminEvents } from "./admin-client.ts";
import { type Command, type Parsed, refuseOperands, UsageError } from "./command.ts";
import { daemonLogOf, showDaemonLog } from "./daemon-log.ts";
import { watchInterrupt } from "./interrupt.ts";
import { note, print } from "./print.ts";
import { findRunning, nothingRuns, onlyOne, type Running } from "./running.ts";
import { gatewayFlags } from "./status.ts";
import { toSafeLine } from "./terminal-text.ts";

/** A line, as `GET /api/logs` has it. */
interface ShownLine {
  readonly seq: number;
  readonly at: number;
  readonly level: string;
  readonly text: string;
  readonly facts: { readonly [name: string]: unknown };
}

const levels = ["debug", "info", "warn", "error"];

/** `junctor logs` */
export const logs: Command = {
  name: "logs",
  summary: "Show the last lines of the log of the daemon or a running gateway, and those to come.",
  flags: {
    ...gatewayFlags,
    follow: { help: "go on with the lines to come, until Ctrl-C", short: "f" },
    level: { value: "LEVEL", help: "the least important lines to show: debug, info, warn or error" },
    json: { help: "as JSON, one line each" },
  },
  examples: ["junctor logs -f", "junctor logs --level warn"],
  run: async (parsed) => {
    refuseOperands("logs", parsed);
    const level = parsed.valueOf("level") ?? "debug";
    if (!levels.includes(level)) throw new UsageError(`--level needs one of ${levels.join(", ")}`);
    const chosen = await chooseLog(parsed);
    if (chosen.kind === "gateway") return showGatewayLog(chosen.socket, level, parsed);
    const follow = parsed.has("follow") ? watchInterrupt() : undefined;
    const shown = { level, isJson: parsed.has("json"), follows: follow?.signal };
    await showDaemonLog(chosen.place, shown);
    follow?.[Symbol.dispose]();
    return 0;
  },
};

/** The log of the one that runs. When nothing does, that of the daemon that ended, which tells why. */
async function chooseLog(parsed: Parsed): Promise<Running | EndedDaemon> {
  const wanted = { config: parsed.valueOf("config"), pid: parsed.valueOf("pid") };
  const running = onlyOne(await findRunning(wanted));
  if (running !== undefined) return running;
  const place = openRunPlace(resolve(wanted.config ?? userConfig()));
  if (wanted.pid !== undefined || !existsSync(daemonLogOf(place))) throw nothingRuns(wanted);
  await note("junctor: no daemon runs; this is the log of the last one\n");
  return { kind: "daemon", place };
}

interface EndedDaemon {
  readonly kind: "daemon";
  readonly place: RunPlace;
}

async function showGatewayLog(socket: string, level: string, parsed: Parsed): Promise<number> {
  const show = (line: ShownLine): string => (parsed.has("json") ? `${JSON.stringify(line)}\n` : toText(line));
  const read = async (after: number): Promise<readonly ShownLine[]> => {
    const path = `/api/logs?level=${level}&limit=1000&after=${after}`;
    return ((await askAdmin(socket, "GET", path)) as { readonly lines: readonly ShownLine[] }).lines;
  };
  let last = 0;
  const tell = async (lines: readonly ShownLine[]): Promise<void> => {
    last = lines.at(-1)?.seq ?? last;
    await print(lines.map(show).join(""));
  };
  if (!parsed.has("follow")) {
    await tell(await read(0));
    return 0;
  }
  using interruption = watchInterrupt();
  // Each event is a reason to read on: so no line is missed or shown twice.
  const events = readAdminEvents(socket, "/api/events?only=log", interruption.signal);
  try {
    for await (const _event of events) await tell(await read(last));
  } catch (error) {
    if (!interruption.signal.aborted) throw error;
  }
  return 0;
}

/** `12:00:00 warn  github is down  reason="it ended"` */
function toText({ at, level, text, facts }: ShownLine): string {
  const clock = new Date(at).toISOString().slice(11, 19);
  const shown = Object.entries(facts).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${toSafeLine([clock, level.padEnd(5), text, ...shown].join(" "))}\n`;
}
