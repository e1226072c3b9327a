import { StringDecoder } from "node:string_decoder";
import { type Clock, systemClock } from "@junctor/core/async";
import { TextTail } from "@junctor/core/channel";
import type { StartProgress } from "@junctor/core/mcp";
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

/** What the process of a server wrote besides messages. */
export interface Words {
  /** The end of what it wrote to its standard error stream. */
  readonly said: string;
  /** The first line on its standard output that is no message; empty when there was none. */
  readonly stray: string;
  /** A number that grows while the process shows signs of progress: text on its standard error stream, or processor time. */
  readonly progress?: number;
}

/** How much of it is kept. */
const maxBytes = 4096;

/** So much processor time is a sign of progress, as it is to a client that waits for a start. */
const progressMs = 100;

/** What the latest process of one server wrote besides messages, also while it is still starting. */
export class ServerWords implements Words {
  #tail = new TextTail(maxBytes);
  #stray = "";
  #measure: (() => StartProgress) | undefined;

  get progress(): number {
    const { stderrBytes, processorMs } = this.#measure?.() ?? { stderrBytes: 0, processorMs: 0 };
    return stderrBytes + Math.floor(processorMs / progressMs);
  }

  get said(): string {
    return this.#tail.text.trim();
  }

  get stray(): string {
    return this.#stray;
  }

  /** Another process is started. */
  begin(): void {
    this.#tail = new TextTail(maxBytes);
    this.#stray = "";
    this.#measure = undefined;
  }

  /** It runs, and this is how busy it is. */
  watch(measure: () => StartProgress): void {
    this.#measure = measure;
  }

  hearStderr(chunk: Uint8Array): void {
    this.#tail.push(chunk);
  }

  hearStray(line: string): void {
    if (this.#stray === "") this.#stray = line;
  }
}
