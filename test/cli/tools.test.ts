import { afterAll, beforeAll, expect, test } from "vitest";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { listenTcp } from "../../packages/server/src/listen/tcp.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { demoServer, junctor, junctorOnTerminal } from "../support/junctor-bin.ts";
import { createOddRegistry } from "../support/odd-tools.ts";

const server = createServer(createDemoRegistry(), { name: "demo", version: "1.0.0" });
let http: HttpListener;
beforeAll(async () => void (http = await listenHttp(server, { port: 0 })));
afterAll(() => http[Symbol.asyncDispose]());

const demoTable = [
  "echo       message=string     Says back what it was told.",
  "add        a=number b=number  Adds two numbers.",
  "countdown  from=integer       Counts down to zero, one number every 200 ms, as it happens.",
  "greet                         Asks the user for a name and greets them.",
  "",
].join("\n");

test("tools of an HTTP server are a table, and who serves them is a note", async () => {
  expect(await junctor(["tools", http.url])).toEqual({
    code: 0,
    stdout: demoTable,
    stderr: "demo 1.0.0, protocol 2026-07-28: 4 tools\n",
  });
});

test("a server is started by the command after --", async () => {
  expect(await junctor(["tools", "--", ...demoServer])).toMatchObject({ code: 0, stdout: demoTable });
});

test("a server is reached by TCP, and --server means the same as the operand", async () => {
  await using listener = await listenTcp(server, { port: 0, host: "127.0.0.1" });
  const run = await junctor(["tools", "--server", `tcp://127.0.0.1:${listener.port}`]);
  expect(run).toMatchObject({ code: 0, stdout: demoTable });
});

test("--json gives whole definitions and nothing else", async () => {
  const { code, stdout, stderr } = await junctor(["tools", http.url, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const listed = JSON.parse(stdout) as { name: string; inputSchema: object }[];
  expect(listed.map(({ name }) => name)).toEqual(["echo", "add", "countdown", "greet"]);
  expect(listed[0]?.inputSchema).toMatchObject({ type: "object", required: ["message"] });
});

test("on a terminal no line is wider than it, and control characters are gone", async () => {
  const odd = createServer(createOddRegistry(), { name: "odd", version: "1.0.0" });
  await using listener = await listenHttp(odd, { port: 0 });
  const { code, stdout } = await junctorOnTerminal(["tools", listener.url], { columns: 60, stdin: "" });
  expect(code).toBe(0);
  const lines = stdout.replaceAll("\r", "").trimEnd().split("\n");
  expect(lines.filter((line) => line.length > 60)).toEqual([]);
  expect(lines.find((line) => line.startsWith("types "))).toMatch(/^types +text \[.*… +Says back/);
  expect(stdout).not.toContain("\u001b");
});
