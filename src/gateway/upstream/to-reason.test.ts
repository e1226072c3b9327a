import { expect, test } from "vitest";
import { ClosedError } from "../../errors/closed-error.ts";
import { ConnectError } from "../../errors/connect-error.ts";
import { HttpError } from "../../errors/http-error.ts";
import { RpcError } from "../../errors/rpc-error.ts";
import { toReason } from "./to-reason.ts";

const system = (code: string): Error =>
  Object.assign(new Error(`${code} secret.internal:80 /opt/secret`), { code });
const missing = "there is no program as its command says, or no such folder to run it in";

test.each([
  [
    new ConnectError("/opt/secret", 'there is no program "/opt/secret"', { cause: system("ENOENT") }),
    missing,
  ],
  [system("ECONNREFUSED"), "it cannot be started or reached (ECONNREFUSED)"],
  [
    new ClosedError("not_sent", "http://secret", { cause: system("ENOTFOUND") }),
    "it cannot be started or reached (ENOTFOUND)",
  ],
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
