import { StringDecoder } from "node:string_decoder";
import { type Clock, systemClock } from "@junctor/core/async";
import type { GatewayLog } from "./log.ts";

/** Longest piece of a line that is logged. */
const maxLineLength = 2000;

/** Most lines of one child that are logged in a second; a child that floods must not flood the log. */
const maxLinesPerSecond = 50;

/** Logs what a child writes to its standard error stream, line by line. */
export function createStderrLog(
  server: string,
  log: GatewayLog,
  clock: Clock = systemClock,
): (chunk: Uint8Array) => void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let second = 0;
  let lines = 0;
  const write = (line: string): void => {
    const now = Math.floor(clock.now() / 1000);
    if (now !== second) {
      if (lines > maxLinesPerSecond)
        log.debug({ server, dropped: lines - maxLinesPerSecond }, "lines of stderr left out");
      second = now;
      lines = 0;
    }
    if (++lines <= maxLinesPerSecond) log.debug({ server, stderr: line.slice(0, maxLineLength) }, "stderr");
  };
  return (chunk) => {
    const pieces = `${rest}${decoder.write(Buffer.from(chunk))}`.split(/\r?\n/);
    rest = (pieces.pop() ?? "").slice(-maxLineLength);
    for (const piece of pieces) if (piece.trim() !== "") write(piece);
  };
}
