import type { ErrorEntry } from "./catalogue.ts";
import { UpstreamError } from "./request-errors.ts";
import { NotFoundError, type RpcError, ScopeError, ToolError } from "./wire-errors.ts";
import { type Crossing, crossings, rpcError } from "./wire-rows.ts";

const classes: { readonly [Name in keyof typeof crossings]: abstract new (...args: never) => Error } = {
  NotFoundError,
  ScopeError,
  ToolError,
  UpstreamError,
};
const names = Object.keys(classes) as (keyof typeof crossings)[];

/** How an error crosses the wire; undefined if a caller must not be told more than that something failed. */
export function crossingOf(error: unknown): Crossing | undefined {
  const found = names.find((name) => error instanceof classes[name]);
  return found && crossings[found];
}

/**
 * The HTTP status of an error response to a modern request. Errors about the request itself have one of their own; what a
 * handler answers is 200, also when it is an error (the protocol leaves that open, and every client reads the body).
 */
export function toStatus({ code, cause }: RpcError): number {
  const row: { readonly number: number; readonly status?: number } | undefined = rpcError.codes[code];
  return crossingOf(cause)?.status ?? row?.status ?? 200;
}

/** The whole table of errors. Its text is loaded when somebody asks, because servers never do. */
export async function loadErrorEntries(): Promise<readonly ErrorEntry[]> {
  return (await import("./catalogue.ts")).errorEntries;
}
