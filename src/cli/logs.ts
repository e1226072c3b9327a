import { askAdmin, chooseAdmin, readAdminEvents } from "./admin-client.ts";
import { type Command, refuseOperands, UsageError } from "./command.ts";
import { watchInterrupt } from "./interrupt.ts";
import { print } from "./print.ts";
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
  summary: "Show the last lines of a running gateway's log, and those to come.",
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
    const { socket } = await chooseAdmin(parsed.valueOf("config"), parsed.valueOf("pid"));
    const show = (line: ShownLine): string =>
      parsed.has("json") ? `${JSON.stringify(line)}\n` : toText(line);
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
  },
};

/** `12:00:00 warn  github is down  reason="it ended"` */
function toText({ at, level, text, facts }: ShownLine): string {
  const clock = new Date(at).toISOString().slice(11, 19);
  const shown = Object.entries(facts).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `${toSafeLine([clock, level.padEnd(5), text, ...shown].join(" "))}\n`;
}
