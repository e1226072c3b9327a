import type { Delivery } from "./delivery.ts";

/** A server could not be reached or did not start. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly code = "client.connect";
  readonly target: string;
  /** Why, without the rest of the message. */
  readonly reason: string;
  /** The end of what a child wrote to its standard error stream. */
  readonly stderr: string;
  /** Whether the server did not answer in time: with more time it might. */
  readonly isTimeout: boolean;
  readonly delivery: Delivery = "not_sent";

  constructor(
    target: string,
    reason: string,
    options: { readonly stderr?: string; readonly isTimeout?: boolean; readonly cause?: unknown } = {},
  ) {
    const { stderr = "", isTimeout = false, cause } = options;
    const said = stderr.trim() === "" ? "" : `\nIt wrote:\n${stderr.trimEnd().replaceAll(/^/gm, "  ")}`;
    super(`Could not connect to ${target}: ${reason}${said}`, { cause });
    this.target = target;
    this.reason = reason;
    this.stderr = stderr;
    this.isTimeout = isTimeout;
  }
}
