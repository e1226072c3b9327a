import type { Delivery } from "./delivery.ts";

/**
 * A tool ran and failed in a way the model should read: it becomes a result with `isError: true` and this message.
 *
 * @example
 * throw new ToolError(`No city called ${city}. Try a larger place nearby.`);
 */
export class ToolError extends Error {
  override readonly name = "ToolError";
  readonly code = "tool.failed";
  /** The tool ran. */
  readonly delivery: Delivery = "answered";
}
