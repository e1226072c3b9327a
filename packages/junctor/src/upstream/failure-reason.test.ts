import { expect, test } from "vitest";
import { ClosedError, ConnectError, HttpError, RpcError } from "../../../core/src/errors/index.ts";
import { toFailure, toReason } from "./failure.ts";

const system = (code: string): Error =>
  Object.assign(new Error(`${code} secret.internal:80 /opt/secret`), { code });

test.each([
  [
    new ConnectError("/opt/secret", 'there is no program "/opt/secret"', {
      kind: "no_program",
      cause: system("ENOENT"),
    }),
    "there is no program as its command says",
  ],
  [
    new ConnectError("node", 'there is no folder "/opt/secret"', {
      kind: "no_folder",
      cause: system("ENOENT"),
    }),
    "there is no folder as its cwd says",
  ],
  [
    new ConnectError("/opt/secret", "…", { kind: "not_executable", cause: system("EACCES") }),
    "its command may not be run: it is a folder, or a file that is not executable",
  ],
  [
    new ConnectError("secret", "it exited with code 2", { kind: "exited", stray: "Usage: secret" }),
    "it exited with code 2; it wrote text that is not an MCP message to its standard output",
  ],
  [
    new ClosedError("not_sent", "secret", { cause: system("ERR_SSL_WRONG_VERSION_NUMBER") }),
    "it does not speak TLS (ERR_SSL_WRONG_VERSION_NUMBER)",
  ],
  [
    new ClosedError("outcome_unknown", "secret", { cause: system("UND_ERR_SOCKET") }),
    "it closed the connection",
  ],
  [
    new RpcError("rpc.other", "https://host/secret answered 200 with a web page", {
      cause: new HttpError(200, "https://host/secret", "<html>secret"),
    }),
    "it answered with HTTP status 200 and no MCP message",
  ],
  [system("ECONNREFUSED"), "nothing listens at its address (ECONNREFUSED)"],
  [
    new ClosedError("not_sent", "http://secret", { cause: system("ENOTFOUND") }),
    "there is no host as its address says (ENOTFOUND)",
  ],
  [system("EHOSTUNREACH"), "it cannot be reached (EHOSTUNREACH)"],
  [system("CERT_HAS_EXPIRED"), "its certificate is not trusted (CERT_HAS_EXPIRED)"],
  [new ClosedError("not_sent", "secret", { cause: system("EPIPE") }), "it ended"],
  [new ClosedError("outcome_unknown", "node --key secret is gone"), "it ended"],
  [new ConnectError("secret", "it exited with code 1", { stderr: "secret" }), "it exited with code 1"],
  [new HttpError(401, "https://host/secret", "secret"), "it answered with HTTP status 401"],
  [new RpcError("rpc.internal", "no database\nsecret"), "no database"],
  ["a word", "a word"],
])("%s is: %s", (cause, reason) => {
  expect(toReason(cause)).toBe(reason);
});

test("a failure has what the child wrote, which a reason never has", () => {
  const cause = new ConnectError("secret", "it exited with code 1", {
    kind: "exited",
    stderr: "no database\n",
  });
  expect(toFailure(cause)).toEqual({ code: "exited", reason: "it exited with code 1", said: "no database" });
});
