import { isBranded, putBrand } from "./branded.ts";
import type { Delivery } from "./delivery.ts";

const brand = Symbol.for("junctor.ToolError");

/**
 * A tool ran and failed in a way the model should read: it becomes a result with `isError: true` and this message.
 *
 * @example
 * throw new ToolError(`No city called ${city}. Try a larger place nearby.`);
 */
export class ToolError extends Error {
  /** A module of the user may have another copy of this class. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isBranded(value, brand);
  }

  static {
    putBrand(this, brand);
  }

  override readonly name = "ToolError";
  readonly code = "tool.failed";
  /** The tool ran. */
  readonly delivery: Delivery = "answered";
}
