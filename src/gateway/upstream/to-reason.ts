import { ClosedError } from "../../errors/closed-error.ts";
import { ConnectError } from "../../errors/connect-error.ts";
import { HttpError } from "../../errors/http-error.ts";

/**
 * Why a server failed, in one line that anybody may read: callers are told it. Commands, addresses and what a child wrote
 * are for the log.
 */
export function toReason(cause: unknown): string {
  const code = systemCodeOf(cause);
  if (code === "ENOENT") return "there is no program as its command says, or no such folder to run it in";
  if (code?.includes("CERT") === true) return `its certificate is not trusted (${code})`;
  if (code !== undefined) return `it cannot be started or reached (${code})`;
  if (cause instanceof ConnectError) return cause.reason;
  if (cause instanceof ClosedError) return "it ended";
  if (cause instanceof HttpError) return `it answered with HTTP status ${cause.status}`;
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.split("\n", 1)[0] ?? text;
}

/** These say that it was there and is gone, which is said better. */
const endings: ReadonlySet<unknown> = new Set(["EPIPE", "ECONNRESET"]);

/** What the system said, such as `ECONNREFUSED`. Its message would name the program or the host. */
function systemCodeOf(error: unknown): string | undefined {
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth++) {
    const { code } = each as { readonly code?: unknown };
    if (typeof code === "string" && /^[A-Z][A-Z_]+$/.test(code)) return endings.has(code) ? undefined : code;
  }
  return undefined;
}
