import { brandErrors } from "./branded.ts";
import type { Delivery } from "./delivery.ts";

/**
 * The token of a caller lacks scopes for what the caller wants to do; nothing was done. Over HTTP it is answered with 403 and a
 * challenge, so that a client can ask its user for more. A tool may throw it too.
 *
 * @example
 * if (!context.identity?.scopes?.includes("files:write")) throw new ScopeError(["files:write"]);
 */
export class ScopeError extends Error {
  static {
    brandErrors(
      this,
      ({ scopes }) => Array.isArray(scopes) && scopes.every((each) => typeof each === "string"),
    );
  }

  override readonly name = "ScopeError";
  readonly code = "provider.insufficient_scope";
  /** All scopes that are needed, also those that the caller has. */
  readonly scopes: readonly string[];
  readonly delivery: Delivery = "not_sent";

  constructor(scopes: readonly string[]) {
    super(`The token lacks a scope: this needs ${scopes.join(" ")}`);
    this.scopes = scopes;
  }
}
