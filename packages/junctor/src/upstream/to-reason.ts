import { stripVTControlCharacters } from "node:util";
import {
  AuthorizationError,
  ConnectError,
  failureCodeOf,
  systemCodeOf,
  HttpError,
} from "@junctor/core/errors";
import { clip } from "@junctor/core/schema";
import type { Failure } from "./health.ts";
import { type Hide, hideText } from "./to-upstream-error.ts";

/** Why a server failed: for programs, for callers, and for those who run the gateway. */
export function toFailure(cause: unknown, hide: Hide = (text) => text): Failure {
  const said = cause instanceof ConnectError ? cause.stderr.trim() : "";
  return { code: failureCodeOf(cause), reason: hideText(toReason(cause), hide), said };
}

/** The reason for a failure, with the last words of its process if there are any: for those who run the gateway. */
export function withLastWords({ reason, said }: Pick<Failure, "reason" | "said">): string {
  const words = lastWordsOf(said);
  return words === undefined ? reason : `${reason}: ${words}`;
}

/** Lines that do not say why a process ended: those that Node.js and npm add to an error, and marks below a line of code. */
const noise = [
  /^[\s\W]*$/,
  /^at .*(?::\d+|\))(?: \{)?$/,
  /^node:internal\S*$|^Node\.js v[\d.]+$|^throw \w+;$/,
  /^(?:code|errno|syscall|path|requireStack): |^Require stack:$|^- \S+$|^'[^']*',?$/,
  /^npm (?:error|ERR!)(?: \w+)?(?: +A complete log.*| +\S*\.log| Note that.*| tarball, folder.*)?$/,
];

/** Whether a line says something about a failure. */
export function isTelling(line: string): boolean {
  const text = line.trim();
  return !noise.some((pattern) => pattern.test(text));
}

/** The line of what a process wrote that says why it ended, most likely. */
export function lastWordsOf(said: string): string | undefined {
  const words = stripVTControlCharacters(said).split("\n").findLast(isTelling);
  return words === undefined ? undefined : clip(words.trim(), 200);
}

/**
 * The reason for a failure of a server, in one line that every caller may read. Commands, addresses and what a child wrote
 * are for the log.
 */
export function toReason(cause: unknown): string {
  switch (failureCodeOf(cause)) {
    case "no_program":
      return "there is no program as its command says";
    case "no_folder":
      return "there is no folder as its cwd says";
    case "not_executable":
      return "its command may not be run: it is a folder, or a file that is not executable";
    case "refused":
      return `nothing listens at its address (${systemCodeOf(cause)})`;
    case "no_host":
      return `there is no host as its address says (${systemCodeOf(cause)})`;
    case "unreachable":
      return `it cannot be reached (${systemCodeOf(cause)})`;
    case "certificate":
      return `its certificate is not trusted (${systemCodeOf(cause)})`;
    case "no_tls":
      return `it does not speak TLS (${systemCodeOf(cause)})`;
    case "lost":
      return systemCodeOf(cause) === "UND_ERR_SOCKET" ? "it closed the connection" : "it ended";
    case "login":
      return "it wants a sign-in";
    case "not_mcp":
      return notMcp(cause);
    default:
      return describe(cause);
  }
}

function describe(cause: unknown): string {
  if (cause instanceof ConnectError)
    return cause.stray === "" ? cause.reason : `${cause.reason}; ${strayReason}`;
  if (cause instanceof AuthorizationError) return cause.reason;
  if (cause instanceof HttpError) return `it answered with HTTP status ${cause.status}`;
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.split("\n", 1)[0] ?? text;
}

const strayReason = "it wrote text that is no MCP message to its standard output";

/** The message of such an error names the address. */
function notMcp(cause: unknown): string {
  const http = cause instanceof Error && cause.cause instanceof HttpError ? cause.cause : cause;
  if (http instanceof HttpError) return `it answered with HTTP status ${http.status} and no MCP message`;
  return describe(cause);
}
