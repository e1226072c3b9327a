import { expect, test } from "vitest";
import { failureCodeOf } from "./failure-code.ts";
import { ClosedError, ConnectError, HttpError, RpcError, TimeoutError } from "./index.ts";

const system = (code: string): Error => Object.assign(new Error(code), { code });
const closedBy = (code: string): ClosedError => new ClosedError("not_sent", "…", { cause: system(code) });
const status = (number: number): HttpError => new HttpError(number, "http://host/", "");

test.each([
  [new ConnectError("x", "…", { kind: "no_folder" }), "no_folder"],
  [new ConnectError("x", "…", { kind: "no_answer" }), "no_answer"],
  [new ConnectError("tcp://x", "…", { cause: system("ECONNREFUSED") }), "refused"],
  [new ConnectError("x", "it speaks another revision"), "other"],
  [closedBy("ECONNREFUSED"), "refused"],
  [closedBy("ENOTFOUND"), "no_host"],
  [closedBy("EHOSTUNREACH"), "unreachable"],
  [closedBy("DEPTH_ZERO_SELF_SIGNED_CERT"), "certificate"],
  [closedBy("UNABLE_TO_VERIFY_LEAF_SIGNATURE"), "certificate"],
  [closedBy("ERR_TLS_CERT_ALTNAME_INVALID"), "certificate"],
  [closedBy("ERR_SSL_WRONG_VERSION_NUMBER"), "no_tls"],
  [closedBy("EPROTO"), "no_tls"],
  [closedBy("UND_ERR_SOCKET"), "lost"],
  [new ClosedError("outcome_unknown", "it is gone"), "lost"],
  [new TimeoutError("idle", 5), "no_answer"],
  [status(401), "unauthorized"],
  [status(403), "unauthorized"],
  [status(404), "no_endpoint"],
  [status(405), "no_endpoint"],
  [status(308), "redirected"],
  [status(429), "too_many"],
  [status(503), "server_fault"],
  [status(418), "not_mcp"],
  [new RpcError("rpc.other", "a web page", { cause: status(200) }), "not_mcp"],
  [new RpcError("rpc.other", "no", { rpcCode: -32_000, cause: status(400) }), "rpc_error"],
  [new Error("no"), "other"],
  ["no", "other"],
] as const)("%s is %s", (error, code) => {
  expect(failureCodeOf(error)).toBe(code);
});
