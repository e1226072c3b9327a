import { BrandedError, type Delivery } from "./branded-error.ts";
import type { ErrorEntry } from "./catalogue.ts";
import { UpstreamError } from "./request-errors.ts";
import type { toolError } from "./table.ts";
import { rpcError, type Crossing, crossings } from "./wire-rows.ts";

/** The stable name of an error that crosses the wire. */
export type RpcErrorCode = keyof typeof rpcError.codes;

/** Our names for the JSON-RPC and MCP error codes, and the numbers they have on the wire. */
export const rpcCodes: { readonly [Code in RpcErrorCode]: (typeof rpcError.codes)[Code]["number"] } =
  Object.fromEntries(
    Object.entries(rpcError.codes).map(([code, { number }]) => [code, number]),
  ) as typeof rpcCodes;

/** What a JSON-RPC error says on the wire besides its message. */
interface RpcErrorOptions {
  /** The number to send, where it is not the one of the code's name. */
  readonly rpcCode?: number;
  /** Machine-readable facts, sent as `error.data`. */
  readonly data?: unknown;
  readonly cause?: unknown;
}

/**
 * An error that crosses the wire as a JSON-RPC error: the request itself was wrong, or could not be served.
 * A tool that ran and failed is a `ToolError` instead.
 */
export class RpcError extends BrandedError {
  protected static override readonly brand = "RpcError";

  protected static override fits({ rpcCode }: Partial<RpcError>): boolean {
    return typeof rpcCode === "number";
  }

  override readonly name = "RpcError";
  readonly code: RpcErrorCode;
  readonly rpcCode: number;
  readonly data: unknown;
  /** A server that answers with an error got the request. */
  readonly delivery: Delivery = "answered";

  constructor(code: RpcErrorCode, message: string, options: RpcErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.rpcCode = options.rpcCode ?? rpcCodes[code];
    this.data = options.data;
  }
}

/** Whether a tool ran and failed, or was not run: by a limit, by its arguments, or because a middleware refused it. */
export type ToolErrorCode = keyof typeof toolError.codes;

interface ToolErrorOptions extends ErrorOptions {
  /** `tool.failed` when left out. It is for logs and audits; the model gets the message only. */
  readonly code?: ToolErrorCode;
}

/**
 * A tool ran and failed in a way the model should read: it becomes a result with `isError: true` and this message.
 *
 * @example
 * throw new ToolError(`No city called ${city}. Try a larger place nearby.`);
 */
export class ToolError extends BrandedError {
  protected static override readonly brand = "ToolError";

  override readonly name = "ToolError";
  readonly code: ToolErrorCode;
  /** `answered` by a tool that ran, `not_sent` when it was not run. */
  readonly delivery: Delivery;

  constructor(message?: string, options: ToolErrorOptions = {}) {
    const { code = "tool.failed", ...rest } = options;
    super(message, rest);
    this.code = code;
    this.delivery = code === "tool.failed" || code === "tool.declined" ? "answered" : "not_sent";
  }
}

/** What a provider was asked for and does not have. */
export type Missing = "tool" | "prompt" | "resource" | "task" | "skill" | "directory" | "group";

/**
 * A provider does not have the thing that a request names. It crosses the wire with the code that the caller's
 * revision and the server's dialect want for it.
 */
export class NotFoundError extends BrandedError {
  protected static override readonly brand = "NotFoundError";

  protected static override fits({ what, id }: Partial<NotFoundError>): boolean {
    return what !== undefined && Object.hasOwn(labels, what) && typeof id === "string";
  }

  override readonly name = "NotFoundError";
  readonly code = "provider.not_found";
  readonly what: Missing;
  /** The name of a tool, prompt or group, the URI of a resource, skill or directory, or the provider's name for the task. */
  readonly id: string;

  constructor(what: Missing, id: string) {
    super(`${labels[what]} not found: ${id}`);
    this.what = what;
    this.id = id;
  }
}

const labels: Readonly<Record<Missing, string>> = {
  tool: "Tool",
  prompt: "Prompt",
  resource: "Resource",
  task: "Task",
  skill: "Skill",
  directory: "Directory",
  group: "Group",
};

/**
 * The token of a caller lacks scopes for what the caller wants to do; nothing was done. Over HTTP it is answered with 403 and a
 * challenge, so that a client can ask its user for more. A tool may throw it too.
 *
 * @example
 * if (!context.identity?.scopes?.includes("files:write")) throw new ScopeError(["files:write"]);
 */
export class ScopeError extends BrandedError {
  protected static override readonly brand = "ScopeError";

  protected static override fits({ scopes }: Partial<ScopeError>): boolean {
    return Array.isArray(scopes) && scopes.every((each) => typeof each === "string");
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

const classes: { readonly [Name in keyof typeof crossings]: abstract new (...args: never) => Error } = {
  NotFoundError,
  ScopeError,
  ToolError,
  UpstreamError,
};
const names = Object.keys(classes) as (keyof typeof crossings)[];

/** How an error crosses the wire; undefined if callers may only learn that something failed. */
export function crossingOf(error: unknown): Crossing | undefined {
  const found = names.find((name) => error instanceof classes[name]);
  return found && crossings[found];
}

/**
 * The HTTP status of an error response to a modern request. Errors about the request itself have their own
 * status; what a handler answers is 200, also when it is an error (the protocol leaves that open, and every
 * client reads the body).
 */
export function toStatus({ code, cause }: RpcError): number {
  const row: { readonly number: number; readonly status?: number } | undefined = rpcError.codes[code];
  return crossingOf(cause)?.status ?? row?.status ?? 200;
}

/** The whole table of errors. Its text is loaded on demand, because servers never need it. */
export async function loadErrorEntries(): Promise<readonly ErrorEntry[]> {
  return (await import("./catalogue.ts")).errorEntries;
}
