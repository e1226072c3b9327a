import { describe, expect, test } from "vitest";
import {
  AbortedError,
  ClosedError,
  ConnectError,
  HttpError,
  NotFoundError,
  RpcError,
  SessionExpiredError,
  TimeoutError,
  ToolError,
  UpstreamError,
} from "../../../core/src/errors/index.ts";
import { isDoubtful, toUpstreamError } from "./failure.ts";

const secret = "s3cret";
const url = `https://user:${secret}@host/mcp?key=${secret}`;

describe("a failure on the way to a server", () => {
  test.each([
    [
      "a way that closed",
      new ClosedError("outcome_unknown", `node --token=${secret} is gone`),
      "lost",
      "outcome_unknown",
    ],
    ["a way that was closed before", new ClosedError("not_sent", `${url}: reset`), "unavailable", "not_sent"],
    ["silence", new TimeoutError("idle", 100), "timeout", "outcome_unknown"],
    ["slowness", new TimeoutError("total", 100), "timeout", "outcome_unknown"],
    ["waiting for it in vain", new TimeoutError("total", 100, "not_sent"), "timeout", "not_sent"],
    [
      "a start",
      new ConnectError(`cmd ${secret}`, `spawn ${secret} ENOENT`, { stderr: secret }),
      "unavailable",
      "not_sent",
    ],
    ["a lost session", new SessionExpiredError(), "unavailable", "not_sent"],
    ["a fault of the server", new HttpError(500, url, secret), "failed", "outcome_unknown"],
    ["a refusal", new HttpError(401, url, secret), "failed", "answered"],
    [
      "a page",
      new RpcError("rpc.other", `${url} answered 200 with a web page`, {
        cause: new HttpError(200, url, secret),
      }),
      "failed",
      "outcome_unknown",
    ],
    [
      "what it says of our envelope",
      new RpcError("rpc.invalid_request", "bad envelope"),
      "failed",
      "answered",
    ],
    ["what it says of our headers", new RpcError("rpc.header_mismatch", "Mcp-Name"), "failed", "answered"],
  ])(
    "%s names the server and what became of the call, and nothing that callers must not see",
    (_, error, reason, delivery) => {
      const failure = toUpstreamError("files", error);
      expect(failure).toBeInstanceOf(UpstreamError);
      const { code, server, message, cause } = failure as UpstreamError;
      expect(failure).toMatchObject({ delivery });
      expect({ code, server }).toEqual({ code: `upstream.${reason}`, server: "files" });
      expect(message).toContain("files");
      expect(message).not.toContain(secret);
      expect(cause).toBe(error);
    },
  );

  test.each([
    ["its own error", new RpcError("rpc.invalid_params", "no such column")],
    [
      "an error with a number of its own",
      new RpcError("rpc.other", "quota", { rpcCode: -31000, data: { left: 0 } }),
    ],
    ["what it does not have", new NotFoundError("tool", "x")],
    ["what a tool says", new ToolError("try another file")],
    ["what was said before", new UpstreamError("busy", "busy", { server: "files", delivery: "not_sent" })],
  ])("%s is passed on as it is", (_, error) => {
    expect(toUpstreamError("files", error)).toBe(error);
  });

  test("a caller that gave up gets its own reason", () => {
    const reason = new Error("the client hung up");
    expect(toUpstreamError("files", new AbortedError("outcome_unknown", reason))).toBe(reason);
    const bare = new AbortedError("not_sent", undefined);
    expect(toUpstreamError("files", bare)).toBe(bare);
  });
});

test.each([
  [new ClosedError("not_sent", "x"), true],
  [new ConnectError("x", "y"), true],
  [new HttpError(502, url, ""), true],
  [new HttpError(503, url, ""), true],
  [new HttpError(500, url, ""), false],
  [new HttpError(404, url, ""), false],
  [new TimeoutError("total", 1), false],
  [new RpcError("rpc.internal", "x"), false],
  [new Error("x"), false],
])("%s casts doubt on a server: %s", (error, isDoubt) => {
  expect(isDoubtful(error)).toBe(isDoubt);
});
