import type { LogLevel } from "../mcp/types.ts";
import type { CallEvent } from "../tools/context.ts";

/** How one call is made. */
export interface CallOptions {
  /** Aborting stops the call, here and on the server. */
  readonly signal?: AbortSignal;
  /** How long nothing may come; progress starts it anew. */
  readonly timeoutMs?: number;
  /** How long the whole may take, progress or not. */
  readonly maxTotalMs?: number;
  /** Takes progress and logs as they come. */
  readonly onEvent?: (event: CallEvent) => void;
  /** Asks for the server's log of this call, from this level up. */
  readonly logLevel?: LogLevel;
  /** Whether arguments are checked before and structured output after; true. */
  readonly validate?: boolean;
  /** Whether a result with `isError` is thrown as a `ToolError`; false. */
  readonly throwOnToolError?: boolean;
  /** More members of the call's `_meta`, such as trace context: `{ traceparent: "00-…" }`. What the client puts there itself wins. */
  readonly meta?: { readonly [key: string]: unknown };
  /** Who makes the call, for the audit. */
  readonly caller?: string;
}
