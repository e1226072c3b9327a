import { brandErrors } from "./branded.ts";
import type { Delivery } from "./delivery.ts";

/** Whether a tool ran and failed, or was not run: by a limit, by its arguments, or because a middleware refused it. */
export type ToolErrorCode = "tool.failed" | "tool.refused" | "tool.rate_limited" | "tool.invalid_arguments";

export interface ToolErrorOptions extends ErrorOptions {
  /** `tool.failed` when left out. It is for logs and audits; the model is told the message only. */
  readonly code?: ToolErrorCode;
}

/**
 * A tool ran and failed in a way the model should read: it becomes a result with `isError: true` and this message.
 *
 * @example
 * throw new ToolError(`No city called ${city}. Try a larger place nearby.`);
 */
export class ToolError extends Error {
  static {
    brandErrors(this);
  }

  override readonly name = "ToolError";
  readonly code: ToolErrorCode;
  /** `answered` by a tool that ran, `not_sent` when it was not run. */
  readonly delivery: Delivery;

  constructor(message?: string, options: ToolErrorOptions = {}) {
    const { code = "tool.failed", ...rest } = options;
    super(message, rest);
    this.code = code;
    this.delivery = code === "tool.failed" ? "answered" : "not_sent";
  }
}
