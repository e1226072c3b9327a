import { styleText } from "node:util";
import type { Clock } from "@junctor/core/async";
import { type ServerStatus, lastWordsOf, withLastWords } from "../../servers/index.ts";
import { clipLine, note, print, toSafeLine } from "../terminal/index.ts";

/** A server, how long it takes to answer, and what to do if something is wrong with it. */
export interface CheckedServer extends ServerStatus {
  readonly latencyMs?: number;
  readonly advice?: string;
}

/** Shows servers one by one, as they are known. */
export interface CheckView extends Disposable {
  /** A server is known. */
  add(server: CheckedServer): Promise<void>;
  /** Servers that are not known yet. */
  wait(servers: readonly ServerStatus[]): void;
  /** Everything is known: nothing that changes is shown from now on. */
  end(): Promise<void>;
}

interface CheckViewOptions {
  /** All servers of the config, for the widths of columns. */
  readonly names: readonly string[];
  /** The width of the terminal; undefined where the output is no terminal, and lines that were written stay. */
  readonly columns: number | undefined;
  readonly hasColors: boolean;
  readonly clock: Clock;
  readonly write?: (text: string) => Promise<void>;
  /** For what is no part of the result. */
  readonly tell?: (text: string) => Promise<void>;
}

/** How often those who read a pipe are told that something is still waited for. */
const reminderMs = 15_000;

/** Most servers that are shown while they are waited for. */
const maxWaiting = 6;

/** Longest name that is shown whole, by the width of the terminal. */
const maxNameLength = (columns = Number.POSITIVE_INFINITY): number => (columns < 100 ? 16 : 32);

/** Moves to the line above and clears it. To clear the rest of the screen at once would leave it in the history of some terminals. */
const eraseLine = "\u001b[1A\u001b[2K";

/** A line for each server as it comes; on a terminal, below them, the servers that are waited for, and why. */
export function createCheckView(options: CheckViewOptions): CheckView {
  const { names, columns, hasColors, clock, write = print, tell = note } = options;
  const nameWidth = Math.max(
    6,
    ...names.map((name) => Math.min(maxNameLength(columns), toSafeLine(name).length)),
  );
  const fit = (line: string): string => (columns === undefined ? line : clipLine(line, columns - 1));
  const startedAt = clock.now();
  let left: readonly ServerStatus[] = [];
  let shownLines = 0;
  let hasHead = false;
  let remindsAt = startedAt + reminderMs;

  const erase = (): string => eraseLine.repeat(shownLines);
  const waitingLines = (): readonly string[] => {
    if (columns === undefined || left.length === 0) return [];
    const seconds = Math.floor((clock.now() - startedAt) / 1000);
    const title = `Waiting for ${left.length} of ${names.length} servers, ${seconds} s`;
    const shown = left.slice(0, left.length > maxWaiting ? maxWaiting - 1 : maxWaiting);
    const rows = shown.map((server) => `  ${toName(server.name, nameWidth)}  ${waitsFor(server)}`);
    const more = left.length - shown.length;
    const lines = ["", title, ...rows, ...(more === 0 ? [] : [`  and ${more} more`])];
    return lines.map((line) => (hasColors ? styleText("dim", fit(line)) : fit(line)));
  };
  const draw = (above: string): Promise<void> => {
    const lines = waitingLines();
    const text = `${erase()}${above}${lines.map((line) => `${line}\n`).join("")}`;
    shownLines = lines.length;
    return text === "" ? Promise.resolve() : write(text);
  };
  const paint = (row: string, server: CheckedServer): string => {
    if (!hasColors) return row;
    const color = server.trouble === undefined ? "green" : isAsked(server) ? "yellow" : "red";
    return `${styleText(color, row.slice(0, 1))}${row.slice(1)}`;
  };
  const headOnce = (): string => {
    if (hasHead) return "";
    hasHead = true;
    const heads = fit([`  ${toName("server", nameWidth)}`, ...head].join("  "));
    return `${hasColors ? styleText("bold", heads) : heads}\n`;
  };

  return {
    add: (server) => {
      left = left.filter(({ name }) => name !== server.name);
      return draw(`${headOnce()}${paint(fit(toLine(server, nameWidth)), server)}\n`);
    },
    wait: (servers) => {
      left = servers;
      if (columns !== undefined) return void draw("");
      if (clock.now() < remindsAt || servers.length === 0) return;
      remindsAt = clock.now() + reminderMs;
      const waiting = servers.map((server) => `${server.name} (${waitsFor(server)})`).join(", ");
      void tell(`junctor: still waiting for ${toSafeLine(waiting)}\n`);
    },
    end: async () => {
      left = [];
      await draw("");
    },
    [Symbol.dispose]: () => {
      left = [];
      void draw("");
    },
  };
}

const head = ["state   ", "revision  ", "tools", " start", "  ping", "it says it is"] as const;

/** One that does not work has a reason where others have figures, so that the reason is seen on a narrow terminal. */
function toLine(server: CheckedServer, nameWidth: number): string {
  const { name, revision = "–", tools, connectMs, latencyMs, says = "", trouble, reason, said = "" } = server;
  const mark = trouble === undefined ? "✓" : isAsked(server) ? "!" : "✗";
  const begin = [`${mark} ${toName(name, nameWidth)}`, toState(server).padEnd(8)];
  const time = (ms: number | undefined): string => (ms === undefined ? "–" : toTime(ms)).padStart(6);
  const rest =
    trouble === undefined
      ? [revision.padEnd(10), String(tools).padStart(5), time(connectMs), time(latencyMs), says]
      : [reason === undefined ? trouble : withLastWords({ reason, said })];
  return [...begin, ...rest.slice(0, -1), toSafeLine(rest.at(-1) ?? "")].join("  ").trimEnd();
}

function toName(name: string, width: number): string {
  return clipLine(toSafeLine(name), width).padEnd(width);
}

/** What a person has to do something about. */
const asked: { readonly [Code in NonNullable<ServerStatus["code"]>]?: string } = {
  login: "LOGIN",
  setup: "SETUP",
  wrong: "WRONG",
};

function isAsked({ code, status }: ServerStatus): boolean {
  return status === "disabled" || (code !== undefined && asked[code] !== undefined);
}

function toState({ code, status, trouble }: ServerStatus): string {
  const state = code === undefined ? undefined : asked[code];
  if (state !== undefined) return state;
  return status === "up" && trouble !== undefined ? "no list" : status === "down" ? "failed" : status;
}

/** A duration in three digits. */
function toTime(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 100_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 1000)} s`;
}

/** What a server that is not known yet is at: its latest words, or what it owes. */
function waitsFor({ trouble = "", said = "" }: ServerStatus): string {
  const words = lastWordsOf(said);
  return toSafeLine(words === undefined ? trouble : `${trouble}: ${words}`);
}
