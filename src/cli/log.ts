import { pino } from "pino";
import type { GatewayLog } from "../gateway/log.ts";
import { toSafeLine } from "./terminal-text.ts";

export interface LogOptions {
  readonly level: string;
  /** Never shown, wherever they turn up. */
  readonly secrets: () => readonly string[];
}

/** A log on standard error: JSON lines, or text for a person at a terminal. */
export function createLog({ level, secrets }: LogOptions): GatewayLog {
  const { stderr } = process;
  const write = stderr.isTTY
    ? (line: string) => void stderr.write(toPretty(line))
    : (line: string) => void stderr.write(line);
  const hide = (line: string): string =>
    secrets().reduce((text, secret) => text.replaceAll(toJsonText(secret), "[secret]"), line);
  return pino(
    { level, base: null, hooks: { streamWrite: hide }, timestamp: pino.stdTimeFunctions.isoTime },
    { write },
  );
}

/** A secret as it stands inside a JSON string. */
function toJsonText(secret: string): string {
  return JSON.stringify(secret).slice(1, -1);
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
