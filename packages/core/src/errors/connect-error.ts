import type { Delivery } from "./delivery.ts";

/** What kept a server from being reached or started, for programs. `other`: only the message says it. */
export type ConnectKind =
  /** There is no such program. */
  | "no_program"
  /** The folder that the program is to run in does not exist. */
  | "no_folder"
  /** The program may not be run. */
  | "not_executable"
  /** The program ended before it answered. */
  | "exited"
  /** No answer came in time. */
  | "no_answer"
  | "other";

interface ConnectErrorOptions {
  readonly kind?: ConnectKind | undefined;
  readonly stderr?: string;
  readonly stray?: string;
  readonly cause?: unknown;
}

/** A server could not be reached or did not start. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly code = "client.connect";
  readonly kind: ConnectKind;
  readonly target: string;
  /** Why, without the rest of the message. */
  readonly reason: string;
  /** The end of what a child wrote to its standard error stream. */
  readonly stderr: string;
  /** The first line that a child wrote to its standard output and that is no message; empty when there was none. */
  readonly stray: string;
  readonly delivery: Delivery = "not_sent";

  constructor(target: string, reason: string, options: ConnectErrorOptions = {}) {
    const { kind = "other", stderr = "", stray = "", cause } = options;
    const said = stderr.trim() === "" ? "" : `\nIt wrote:\n${stderr.trimEnd().replaceAll(/^/gm, "  ")}`;
    const strayed = stray === "" ? "" : `\n${strayText}:\n  ${stray}`;
    super(`Could not connect to ${target}: ${reason}${said}${strayed}`, { cause });
    this.kind = kind;
    this.target = target;
    this.reason = reason;
    this.stderr = stderr;
    this.stray = stray;
  }
}

const strayText = "It wrote to its standard output, where only MCP messages belong";
