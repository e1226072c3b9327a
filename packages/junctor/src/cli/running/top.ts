import { styleText } from "node:util";
import type { CallHistory, ServerReport, Servers, Status, Usage } from "../../admin/index.ts";
import { askAdmin } from "../serve/index.ts";
import {
  print,
  refuseOperands,
  type Run,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";
import { findRunning, nothingRuns, onlyOne } from "./running.ts";
import { describeShort, describeTook, toTable } from "./table.ts";

const everyMs = 2000;
const hourMs = 3_600_000;

/** `junctor top` */
export const top: Run<"top"> = async (parsed) => {
  refuseOperands("top", parsed);
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = onlyOne(await findRunning(wanted));
  if (found.length === 0) throw nothingRuns(wanted);
  const socket = found.flatMap((running) => (running.kind === "gateway" ? [running.socket] : []))[0];
  if (socket === undefined) throw new UsageError("the daemon has no numbers of its own; open its page");
  if (parsed.flags.json) {
    await print(`${JSON.stringify(await look(socket))}\n`);
    return 0;
  }
  if (parsed.flags.once || !process.stdout.isTTY) {
    await print(draw(await look(socket), { columns: process.stdout.columns, lines: undefined }));
    return 0;
  }
  await follow(socket);
  return 0;
};

/** Draws again and again on a screen of its own, until Ctrl-C. */
async function follow(socket: string): Promise<void> {
  using interruption = watchInterrupt();
  const { signal } = interruption;
  await print("\x1b[?1049h\x1b[?25l");
  try {
    while (!signal.aborted) {
      const { columns, rows } = process.stdout;
      const screen = draw(await look(socket), { columns, lines: rows });
      await print(`\x1b[H${screen.replaceAll("\n", "\x1b[K\n")}\x1b[J`);
      await rest(signal);
    }
  } finally {
    await print("\x1b[?25h\x1b[?1049l");
  }
}

function rest(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, everyMs);
    signal.addEventListener("abort", done);
  });
}

interface Look {
  readonly status: Status;
  readonly servers: readonly ServerReport[];
  readonly history: CallHistory;
  readonly tools: Usage["rows"];
  readonly callers: Usage["rows"];
}

async function look(socket: string): Promise<Look> {
  const ask = <T>(path: string): Promise<T> => askAdmin(socket, "GET", path) as Promise<T>;
  const [status, { servers }, history, tools, callers] = await Promise.all([
    ask<Status>("/api/status"),
    ask<Servers>("/api/servers"),
    ask<CallHistory>("/api/history?limit=0&sinceMs=60000"),
    ask<Usage>(`/api/usage?by=tool&sinceMs=${hourMs}`),
    ask<Usage>(`/api/usage?by=caller&sinceMs=${hourMs}`),
  ]);
  return { status, servers, history, tools: tools.rows, callers: callers.rows };
}

interface Screen {
  readonly columns: number | undefined;
  /** Undefined where there is no limit. */
  readonly lines: number | undefined;
}

function draw({ status, servers, history, tools, callers }: Look, { columns, lines }: Screen): string {
  const ill = servers.filter(({ cause }) => cause !== undefined);
  const up = servers.filter((server) => server.status === "up").length;
  const verdict =
    ill.length === 0
      ? paint("green", "Everything is fine.")
      : paint("red", `${ill.length === 1 ? "1 server is" : `${ill.length} servers are`} in trouble.`);
  const head = [
    `${verdict} ${up} of ${servers.length} up, ${status.calls.underway} calls underway`,
    `last minute: ${history.all} calls, ${history.failed} failed; since the start: ${status.calls.total}, ${status.calls.failed} failed`,
    "",
    ...ill
      .slice(0, 8)
      .flatMap(({ name, cause }) => [
        fit(`${name}: ${cause?.text ?? ""}`, columns, "red"),
        ...(cause?.advice === undefined ? [] : [fit(`  ${cause.advice}`, columns)]),
      ]),
    ...(ill.length === 0 ? [] : [""]),
  ];
  const tables = [
    tableOf("TOOLS, LAST HOUR", tools, columns),
    tableOf("CALLERS, LAST HOUR", callers, columns),
  ];
  const all = [...head, ...tables.join("\n").trimEnd().split("\n")];
  return `${all.slice(0, lines === undefined ? undefined : lines - 1).join("\n")}\n`;
}

function tableOf(title: string, rows: Usage["rows"], columns: number | undefined): string {
  const cells = rows
    .slice(0, 10)
    .map(({ name, calls, failed, p50Ms, p99Ms, tokensOut }) => [
      name,
      String(calls),
      String(failed),
      describeTook(p50Ms),
      describeTook(p99Ms),
      describeShort(tokensOut),
    ]);
  return toTable([[title, "CALLS", "FAILED", "MEDIAN", "P99", "TOKENS OUT"], ...cells], columns);
}

/** A line that is cut where the terminal ends. */
function fit(text: string, columns = Number.POSITIVE_INFINITY, colour?: "red"): string {
  const safe = toSafeLine(text);
  const cut = safe.length < columns ? safe : `${safe.slice(0, columns - 2)}…`;
  return colour === undefined ? cut : paint(colour, cut);
}

/** Colour on a terminal alone, and not where `NO_COLOR` is set. */
function paint(colour: "red" | "green", text: string): string {
  const isWanted = process.stdout.isTTY && (process.env["NO_COLOR"] ?? "") === "";
  return isWanted ? styleText(colour, text) : text;
}
