import { pino } from "pino";
import type { GatewayLog } from "../gateway/log.ts";
import { toSafeLine } from "./terminal-text.ts";

/** A log on standard error: JSON lines, or text for a person at a terminal. */
export function createLog(level: string): GatewayLog {
  const { stderr } = process;
  const write = (line: string): void => void stderr.write(stderr.isTTY ? toPretty(line) : line);
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

const levels: { readonly [level: number]: string } = {
  10: "trace",
  20: "debug",
  30: "info",
  40: "warn",
  50: "error",
  60: "fatal",
};

/** `12:00:00 warn  github is down  reason="it ended"` */
function toPretty(line: string): string {
  const { level, time, msg, ...facts } = JSON.parse(line) as { readonly [key: string]: unknown };
  const clock = String(time).slice(11, 19);
  const shown = Object.entries(facts).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const text = [clock, (levels[Number(level)] ?? "?").padEnd(5), String(msg), ...shown].join(" ");
  return `${toSafeLine(text)}\n`;
}
