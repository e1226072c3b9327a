import { brandErrors } from "./branded.ts";
import type { Delivery } from "./delivery.ts";

/** Our names for the JSON-RPC and MCP error codes, and the numbers they have on the wire. */
export const rpcCodes = {
  "rpc.parse": -32700,
  "rpc.invalid_request": -32600,
  "rpc.method_not_found": -32601,
  "rpc.invalid_params": -32602,
  "rpc.internal": -32603,
  /** The caller holds as much as it may; see `data`. */
  "rpc.too_many": -32603,
  /** All callers together hold as much as there is; see `data`. */
  "rpc.overloaded": -32603,
  /** The caller's token lacks scopes; see `data`. */
  "rpc.insufficient_scope": -32003,
  "rpc.not_initialized": -32002,
  "rpc.resource_not_found": -32002,
  "rpc.header_mismatch": -32020,
  "rpc.missing_capability": -32021,
  "rpc.unsupported_version": -32022,
  /** A code of the other side that we have no name for; see {@link RpcError.rpcCode}. */
  "rpc.other": 0,
} as const;

/** The stable name of an error that crosses the wire. */
export type RpcErrorCode = keyof typeof rpcCodes;

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
export class RpcError extends Error {
  static {
    brandErrors(this, ({ rpcCode }) => typeof rpcCode === "number");
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
