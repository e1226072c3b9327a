import { expect, test } from "vitest";
import { ClosedError, ConnectError, HttpError, ValidationError } from "../../../../core/src/errors/index.ts";
import { toComplaint } from "./complaint.ts";

test.each([
  ["/from", "from"],
  ["/tags/0", "tags[0]"],
  ["/options/deep/1/name", "options.deep[1].name"],
  ["/a~1b~0c", "a/b~c"],
  ["/~01", "~1"],
  ["/", '""'],
  ["", "the arguments"],
])("an argument that does not fit is named as it was typed: %j is %s", async (path, name) => {
  const issues = [{ path, message: "must be string" }];
  const error = new ValidationError("tool", "arguments", issues, `Invalid arguments: ${path} must be string`);
  expect(await toComplaint(error)).toEqual({ text: `junctor: tool: ${name} must be string\n`, exitCode: 2 });
});

test("all that does not fit is on one line", async () => {
  const issues = [
    { path: "/a", message: "must be string" },
    { path: "/b", message: "must be number" },
  ];
  const error = new ValidationError("tool", "arguments", issues, "…");
  expect((await toComplaint(error)).text).toBe("junctor: tool: a must be string; b must be number\n");
});

const system = (code: string): Error => Object.assign(new Error(code), { code });
const closedBy = (code: string): Error =>
  new ClosedError("not_sent", "http://host: it failed", { cause: system(code) });

test.each([
  [new ConnectError("x", "no", { kind: "no_program" }), "install it, or write its whole path"],
  [new ConnectError("x", "no", { kind: "exited" }), "run it by hand"],
  [new ConnectError("x", "no", { kind: "exited", stderr: "set API_KEY" }), "--env API_KEY"],
  [new ConnectError("x", "no", { kind: "exited", stray: "Usage" }), "only MCP messages"],
  [new ConnectError("x", "no", { kind: "no_answer" }), "--timeout SECONDS waits longer"],
  [closedBy("ECONNREFUSED"), "--server URL or -- COMMAND"],
  [closedBy("ENOTFOUND"), "check the URL"],
  [closedBy("EHOSTUNREACH"), "firewall"],
  [closedBy("CERT_HAS_EXPIRED"), "NODE_EXTRA_CA_CERTS=FILE"],
  [closedBy("ERR_SSL_WRONG_VERSION_NUMBER"), "write http://"],
  [closedBy("UND_ERR_SOCKET"), "write https://"],
  [new HttpError(401, "http://host/", ""), "--header"],
  [new HttpError(404, "http://host/", ""), "most end in /mcp or /sse"],
])("%s says what to do: %s", async (error, advice) => {
  const { text, exitCode } = await toComplaint(error);
  expect(exitCode).toBe(3);
  expect(text.split("\n", 1)[0]).toContain(advice);
});

test("what a child wrote comes after what to do", async () => {
  const error = new ConnectError("x", "no answer", { kind: "no_answer", stderr: "waiting\n", stray: "" });
  expect((await toComplaint(error)).text).toBe(
    "junctor: Could not connect to x: no answer; --timeout SECONDS waits longer\nIt wrote:\n  waiting\n",
  );
});
