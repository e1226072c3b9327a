import {
  AuthorizationError,
  ClosedError,
  ConnectError,
  type ConnectKind,
  HttpError,
  TimeoutError,
} from "./request-errors.ts";
import { RpcError } from "./wire-errors.ts";

/** Why a server cannot be used, for programs that advise a person. `other`: only the message says it. */
export type FailureCode =
  | ConnectKind
  /** Nothing listens at the address. */
  | "refused"
  /** There is no such host. */
  | "no_host"
  /** The network does not lead there. */
  | "unreachable"
  /** Its certificate is not trusted. */
  | "certificate"
  /** It does not speak TLS. */
  | "no_tls"
  /** It was there and closed the connection. */
  | "lost"
  /** HTTP 401 or 403. */
  | "unauthorized"
  /** A person must sign in. */
  | "login"
  /** This client must be registered with the authorization server. */
  | "setup"
  /** Something about its authorization is wrong. */
  | "wrong"
  /** HTTP 404, 405 or 410. */
  | "no_endpoint"
  /** HTTP 3xx. */
  | "redirected"
  /** HTTP 429. */
  | "too_many"
  /** HTTP 5xx. */
  | "server_fault"
  /** It answers, but not with MCP. */
  | "not_mcp"
  /** It answers a request with an error of its own. */
  | "rpc_error";

/** Classifies the error with which connecting to a server, or listing it, failed. */
export function failureCodeOf(error: unknown): FailureCode {
  if (error instanceof ConnectError && error.kind !== "other") return error.kind;
  if (error instanceof AuthorizationError) return codesOfAuthorization[error.code];
  if (error instanceof HttpError) return codeOfStatus(error.status);
  if (error instanceof RpcError) return error.rpcCode === 0 ? "not_mcp" : "rpc_error";
  if (error instanceof TimeoutError) return "no_answer";
  const system = systemCodeOf(error);
  if (system !== undefined) return codeOfSystem(system);
  return error instanceof ClosedError ? "lost" : "other";
}

/** The code that the system or undici set, such as `ECONNREFUSED`, anywhere in the causes of an error. */
export function systemCodeOf(error: unknown): string | undefined {
  for (
    let current = error, depth = 0;
    current instanceof Error && depth < 5;
    current = current.cause, depth++
  ) {
    const { code } = current as { readonly code?: unknown };
    if (typeof code === "string" && /^[A-Z][A-Z_]+$/.test(code)) return code;
  }
  return undefined;
}

function codeOfStatus(status: number): FailureCode {
  if (status === 401 || status === 403) return "unauthorized";
  if (status === 404 || status === 405 || status === 410) return "no_endpoint";
  if (status === 429) return "too_many";
  if (status >= 500) return "server_fault";
  return status >= 300 && status < 400 ? "redirected" : "not_mcp";
}

const codesOfAuthorization: { readonly [Code in AuthorizationError["code"]]: FailureCode } = {
  "auth.login_required": "login",
  "auth.insufficient_scope": "login",
  "auth.setup": "setup",
  "auth.metadata": "wrong",
  "auth.callback": "wrong",
  "auth.refused": "wrong",
  "auth.unreachable": "unreachable",
};

const systemCodes: { readonly [code: string]: FailureCode } = {
  ECONNREFUSED: "refused",
  ENOTFOUND: "no_host",
  EAI_AGAIN: "no_host",
  ECONNRESET: "lost",
  EPIPE: "lost",
  UND_ERR_SOCKET: "lost",
  EPROTO: "no_tls",
  HOSTNAME_MISMATCH: "certificate",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "certificate",
};

function codeOfSystem(code: string): FailureCode {
  if (Object.hasOwn(systemCodes, code)) return systemCodes[code] as FailureCode;
  if (code.includes("CERT")) return "certificate";
  return code.startsWith("ERR_SSL_") ? "no_tls" : "unreachable";
}
