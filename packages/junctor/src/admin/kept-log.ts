import type { Clock } from "@junctor/core/async";
import type { GatewayLog, GatewayLogLevel } from "../log/index.ts";
import type { AdminLogLine } from "./answers.ts";

/** A log whose level may change. */
export interface LeveledLog extends GatewayLog {
  level: string;
}

const logLevels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
const ranks: { readonly [level: string]: number } = Object.fromEntries(
  logLevels.map((level, rank) => [level, rank]),
);

const maxLines = 1000;
/** A server may write much to its standard error stream. */
const maxLineLength = 8 * 1024;

/** A log that keeps its last lines in memory. */
export interface KeptLog extends LeveledLog {
  /** Lines after a number, of at least a level: the last `limit` of them. */
  read(after: number, level: string, limit: number): readonly AdminLogLine[];
  /** Calls back for each line, until the returned function is called. */
  listen(listener: (line: AdminLogLine) => void): () => void;
}

/** Passes lines on to another log, and keeps the last ones. */
export function createKeptLog(inner: LeveledLog, clock: Clock): KeptLog {
  const lines: AdminLogLine[] = [];
  const listeners = new Set<(line: AdminLogLine) => void>();
  let seq = 0;
  const isLevelEnabled = (level: GatewayLogLevel): boolean => inner.isLevelEnabled?.(level) ?? true;
  const at =
    (level: GatewayLogLevel) =>
    (facts: object, text: string): void => {
      if (!isLevelEnabled(level)) return;
      inner[level](facts, text);
      const shown = { text: text.slice(0, maxLineLength), facts: toShort(facts) };
      const line = { seq: ++seq, at: clock.date(), level, ...shown };
      lines.push(line);
      if (lines.length > maxLines) lines.shift();
      for (const listener of listeners) listener(line);
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    isLevelEnabled,
    get level() {
      return inner.level;
    },
    set level(level) {
      inner.level = level;
    },
    read: (after, level, limit) => {
      const least = ranks[level] ?? 0;
      return lines.filter((line) => line.seq > after && (ranks[line.level] ?? 0) >= least).slice(-limit);
    },
    listen: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** Facts, or the beginning of their JSON if that is long. */
function toShort(facts: object): AdminLogLine["facts"] {
  const json = JSON.stringify(facts);
  return json.length <= maxLineLength ? { ...facts } : { cut: json.slice(0, maxLineLength) };
}
