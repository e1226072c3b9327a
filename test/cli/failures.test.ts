import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { demoServer, junctor } from "../support/junctor-bin.ts";

// A server that cannot be used ends every command with code 3 and one line that says what to do.

const authenticate = (header: (name: string) => string | undefined): string | undefined =>
  header("authorization") === "Bearer right" ? "ada" : undefined;

let guarded: HttpListener;
beforeAll(async () => {
  const server = createServer(createDemoRegistry(), { name: "demo", version: "1.0.0" });
  guarded = await listenHttp(server, { port: 0, authenticate });
});
afterAll(() => guarded[Symbol.asyncDispose]());

test("nobody listens", async () => {
  const { code, stdout, stderr } = await junctor(["tools", "http://127.0.0.1:9"]);
  expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
  expect(stderr).toMatch(/^junctor: .*connection refused.*--server URL or -- COMMAND\n$/);
});

test("there is no such program", async () => {
  const { code, stderr } = await junctor(["tools", "--", "no-such-program"]);
  expect(code).toBe(3);
  expect(stderr).toMatch(/^junctor: .*there is no program "no-such-program" here.*\n$/);
});

test.skipIf(process.platform === "win32")("the program may not be run", async () => {
  const folder = await mkdtemp(join(tmpdir(), "junctor-"));
  const program = join(folder, "server");
  await writeFile(program, "#!/bin/sh\n", { mode: 0o600 });
  const { code, stdout, stderr } = await junctor(["tools", "--", program, "now"]);
  await rm(folder, { recursive: true });
  expect({ code, stdout, stderr }).toEqual({
    code: 3,
    stdout: "",
    stderr: `junctor: Could not connect to ${program} now: ${JSON.stringify(program)} may not be run: it is a folder, or a file that is not executable; chmod +x makes a file executable\n`,
  });
});

test("the program is not a server", async () => {
  const { code, stderr } = await junctor(["tools", "--", process.execPath, "-e", "process.exit(4)"]);
  expect(code).toBe(3);
  expect(stderr).toMatch(/^junctor: Could not connect to /);
});

test("the program says nothing", async () => {
  const silent = [process.execPath, "-e", "process.stdin.resume()"];
  const { code, stderr } = await junctor(["tools", "--timeout", "300ms", "--", ...silent]);
  expect(code).toBe(3);
  expect(stderr).toMatch(/^junctor: .*300 ms; --timeout SECONDS waits longer\n$/);
});

test("the path is wrong", async () => {
  const { code, stderr } = await junctor(["tools", guarded.url.replace("/mcp", "/")]);
  expect(code).toBe(3);
  expect(stderr).toMatch(/^junctor: .*the endpoint is \/mcp.*\n$/);
});

test("a key is missing or wrong, and the right one works", async () => {
  const words = ["call", "add", "a=1", "b=2", "--server", guarded.url];
  const [without, wrong, right] = await Promise.all([
    junctor(words),
    junctor([...words, "--header", "Authorization: Bearer wrong"]),
    junctor([...words, "--header", "Authorization: Bearer right"]),
  ]);
  expect(without.code).toBe(3);
  expect(without.stderr).toMatch(/^junctor: .*Authorization: Bearer KEY.*\n$/);
  expect(wrong.code).toBe(3);
  expect(wrong.stderr).not.toContain("wrong");
  expect(right).toEqual({ code: 0, stdout: "3\n", stderr: "" });
});

test("wrong arguments end with code 2, before anything is sent", async () => {
  const words = ["call", "add", "a=1", "b=two", "--server", guarded.url];
  expect(await junctor([...words, "--header", "authorization:Bearer right"])).toEqual({
    code: 2,
    stdout: "",
    stderr: "junctor: b=two is not a number (add takes a=number b=number)\n",
  });
});

test("arguments a schema does not allow are named as they were typed", async () => {
  expect(await junctor(["call", "countdown", "from=101", "--", ...demoServer])).toEqual({
    code: 2,
    stdout: "",
    stderr: "junctor: countdown: from must be <= 100 (got number 101)\n",
  });
});
