import { stripVTControlCharacters } from "node:util";
import type { Agreement } from "@junctor/client";
import {
  AbortedError,
  AuthorizationError,
  ClosedError,
  ConnectError,
  type Delivery,
  type FailureCode,
  failureCodeOf,
  HttpError,
  rpcCodes,
  RpcError,
  SessionExpiredError,
  systemCodeOf,
  TimeoutError,
  UpstreamError,
  type UpstreamReason,
} from "@junctor/core/errors";
import { clip } from "@junctor/core/schema";
import { junctor } from "../invocation/index.ts";

/** Why a server failed: for programs, for callers, and for the operator. */
export function toFailure(cause: unknown, hide: Hide = (text) => text): Failure {
  const said = cause instanceof ConnectError ? cause.stderr.trim() : "";
  return { code: failureCodeOf(cause), reason: hideText(toReason(cause), hide), said };
}

/** The reason for a failure, with the last words of its process if there are any: for the operator. */
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

/** The line of a process's output that most likely says why it ended. */
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

const strayReason = "it wrote text that is not an MCP message to its standard output";

/** Without the message of the error, which names the address. */
function notMcp(cause: unknown): string {
  const http = cause instanceof Error && cause.cause instanceof HttpError ? cause.cause : cause;
  if (http instanceof HttpError) return `it answered with HTTP status ${http.status} and no MCP message`;
  return describe(cause);
}

/** Codes that are about our hop to the server. Passed on, they would mislead the caller about its own hop. */
const hopCodes: ReadonlySet<number> = new Set([
  rpcCodes["rpc.parse"],
  rpcCodes["rpc.invalid_request"],
  rpcCodes["rpc.header_mismatch"],
  rpcCodes["rpc.unsupported_version"],
]);

/**
 * The error that a caller gets for a failure behind the gateway. The server's own errors are passed on as they are; everything
 * else says which server, what happened, and whether the call may have been carried out. Commands, URLs and what a child
 * wrote are for the log: they are not the caller's to know.
 */
export function toUpstreamError(server: string, error: unknown, hide: Hide = (text) => text): unknown {
  const failed = (reason: UpstreamReason, text: string, delivery: Delivery): UpstreamError =>
    new UpstreamError(reason, text, { server, delivery, cause: error });
  if (error instanceof RpcError) {
    // The one error of a server that is about our caller, and that our own server has to recognise.
    if (error.rpcCode === rpcCodes["rpc.missing_capability"])
      return new RpcError("rpc.missing_capability", error.message, { data: error.data, cause: error });
    if (error.rpcCode === 0)
      return failed("failed", hideText(noSense(server, error), hide), "outcome_unknown");
    if (!hopCodes.has(error.rpcCode)) return hideIn(error, hide);
    const text = `${server} refused the request: ${error.message}`;
    return failed("failed", hideText(text, hide), "answered");
  }
  if (error instanceof ClosedError) {
    const isSent = error.delivery === "outcome_unknown";
    const text = isSent
      ? `${server} was lost before it answered. Whether the call was carried out is unknown.`
      : `${server} was lost, and the call was not sent.`;
    return failed(isSent ? "lost" : "unavailable", text, error.delivery);
  }
  if (error instanceof AuthorizationError)
    return failed("unavailable", hideText(toAuthorizationText(server, error), hide), "not_sent");
  if (error instanceof TimeoutError) {
    const limit = error.kind === "idle" ? "was silent for" : "was not done after";
    const text = `${server} ${limit} ${error.timeoutMs} ms, and the call was cancelled.`;
    return failed("timeout", text, error.delivery);
  }
  if (error instanceof ConnectError) {
    return failed("unavailable", `${server} cannot be reached.`, "not_sent");
  }
  if (error instanceof SessionExpiredError) {
    return failed("unavailable", `${server} keeps forgetting us.`, "not_sent");
  }
  if (error instanceof HttpError) {
    const text = `${server} answered with HTTP status ${error.status}.`;
    return failed("failed", text, error.delivery);
  }
  if (error instanceof AbortedError) return error.cause ?? error;
  return error;
}

/** The reason as a caller may see it: without texts of the server or its authorization server. */
function toAuthorizationText(server: string, { code }: AuthorizationError): string {
  switch (code) {
    case "auth.login_required":
      return `${server} wants a sign-in. Those who run the gateway can do that: ${junctor("login")} ${server}`;
    case "auth.insufficient_scope":
      return `${server} wants more access than it was granted. Those who run the gateway can sign in again: ${junctor("login")} ${server}`;
    case "auth.unreachable":
      return `The authorization server of ${server} does not answer.`;
    default:
      return `The authorization of ${server} does not work. Those who run the gateway can see why: ${junctor("check")}`;
  }
}

/** Without the message of an HTTP error, which names the address. */
function noSense(server: string, { message, cause }: RpcError): string {
  const what =
    cause instanceof HttpError ? `HTTP status ${cause.status} and no MCP message.` : toSentence(message);
  return `${server} answered with something that makes no sense: ${what} Whether the call was carried out is unknown.`;
}

function toSentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

/** Takes secrets out of the strings of a JSON text. */
export type Hide = (text: string) => string;

/** The same for a plain text. */
export function hideText(text: string, hide: Hide): string {
  return JSON.parse(hide(JSON.stringify(text))) as string;
}

/** A server may repeat secrets that it was given: callers must not see them. */
function hideIn(error: RpcError, hide: Hide): RpcError {
  const text = JSON.stringify([error.message, error.data ?? null]);
  const hidden = hide(text);
  if (hidden === text) return error;
  const [message, data] = JSON.parse(hidden) as [string, unknown];
  return new RpcError(error.code, message, { rpcCode: error.rpcCode, data: data ?? undefined });
}

/** Whether a failure suggests that the server is gone, and not just that it refused a request. */
export function isDoubtful(error: unknown): boolean {
  if (error instanceof HttpError) return error.status >= 502;
  return error instanceof ClosedError || error instanceof ConnectError;
}

/** Why a server failed. */
export interface Failure {
  readonly code: FailureCode;
  readonly reason: string;
  /** The end of what a child wrote to its standard error stream; for the operator, not for callers. */
  readonly said: string;
}

/** The state of a connection. `transitions` says which state may follow which. */
export type Health =
  /** Not needed so far, or not for a while. */
  | { readonly kind: "idle" }
  /** It is about to start, and other servers start first. `after`: how it failed before, if it did. */
  | { readonly kind: "waiting" | "starting"; readonly since: number; readonly after?: Failure | undefined }
  | { readonly kind: "up"; readonly since: number; readonly agreement: Agreement; readonly connectMs: number }
  /** It failed, and is tried again at `nextTryAt`. `isBroken`: it failed too often lately, so that takes a while. */
  | (Failure & {
      readonly kind: "down";
      readonly since: number;
      readonly nextTryAt: number;
      readonly isBroken: boolean;
    })
  | { readonly kind: "stopped" };
