import type { ChildProcess } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { demoServer, junctor, oddServer, type Run, type RunOptions } from "../support/junctor-bin.ts";
import { createOddRegistry } from "../support/odd-tools.ts";

let http: HttpListener;
let abortedCalls = 0;
beforeAll(async () => {
  const registry = createOddRegistry(() => abortedCalls++);
  const server = createServer(registry, { name: "odd", version: "1.0.0" });
  http = await listenHttp(server, { port: 0 });
});
afterAll(() => http[Symbol.asyncDispose]());

const call = (words: readonly string[], options?: RunOptions): Promise<Run> =>
  junctor(["call", ...words, "--server", http.url], options);
const demo = ["--", ...demoServer];
const own = ["--", ...oddServer];

test("a call prints its text", async () => {
  expect(await junctor(["call", "add", "a=2", "b=0.5", ...demo])).toEqual({
    code: 0,
    stdout: "2.5\n",
    stderr: "",
  });
});

test("values are typed by the schema", async () => {
  const words = [
    "text=12",
    "count=3",
    "ratio=-1.5e3",
    "isOn=true",
    "unit=celsius",
    "tags=a",
    "tags=b=c",
    "sizes=[1,2]",
    'options={"deep":[null]}',
    "limit=null",
  ];
  const { code, stdout } = await call(["types", ...words]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    text: "12",
    count: 3,
    ratio: -1500,
    isOn: true,
    unit: "celsius",
    tags: ["a", "b=c"],
    sizes: [1, 2],
    options: { deep: [null] },
    limit: null,
  });
});

test("arguments come as JSON, from the command line or the standard input", async () => {
  const args = '{"text":"ü","count":1}';
  const [given, piped] = await Promise.all([
    call(["types", "--args", args]),
    call(["types", "--args", "-"], { stdin: args }),
  ]);
  expect(given).toEqual({ code: 0, stdout: `${args}\n`, stderr: "" });
  expect(piped).toEqual(given);
});

test("a megabyte goes through a pipe whole", async () => {
  const { code, stdout } = await call(["big", "bytes=1048576"]);
  expect({ code, length: stdout.length }).toEqual({ code: 0, length: 1_048_577 });
});

test("in a pipe a stream is its result alone", async () => {
  expect(await junctor(["call", "countdown", "from=2", ...demo])).toEqual({
    code: 0,
    stdout: "2 1 liftoff\n",
    stderr: "",
  });
});

test("progress and logs go to the standard error stream", async () => {
  const { code, stdout, stderr } = await call(["steps"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "done\n" });
  expect(stderr.split("\n")).toEqual(["[1/2] half way", '[warning] oven: {"hot":true}', "[2/2]", ""]);
});

test("content that is not text is summarised", async () => {
  const { stdout } = await call(["gallery"]);
  expect(stdout.split("\n")).toEqual([
    "first",
    "[image: image/png, 2.0 KiB]",
    "[audio: audio/wav, 3 bytes]",
    "[link: one, note://1]",
    "[resource: note://2, text/plain]",
    "inside",
    "[resource: note://3, application/octet-stream, 5 bytes]",
    "",
  ]);
});

test("--json gives the result as it came", async () => {
  const { code, stdout } = await junctor(["call", "add", "a=1", "b=2", "--json", ...demo]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ content: [{ type: "text", text: "3" }] });
});

test("a tool that fails ends with code 1, and its text is on the standard error stream", async () => {
  expect(await call(["fail"])).toEqual({
    code: 1,
    stdout: "",
    stderr: "junctor: fail failed: No such city. Try a larger one.\n",
  });
});

test("a failure as JSON is still on the standard output, and still code 1", async () => {
  const { code, stdout } = await call(["fail", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ isError: true });
});

test("a question without a terminal is declined, and a note says so", async () => {
  expect(await call(["order"])).toEqual({
    code: 0,
    stdout: "The user said decline.\n",
    stderr: "junctor: the server asks: What may I bring? (declined: there is no terminal to ask on)\n",
  });
});

test("a server that dies during a call is a failure of the connection, with its last words", async () => {
  const { code, stdout, stderr } = await junctor(["call", "die", ...own]);
  expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
  expect(stderr).toContain("I cannot go on.");
  expect(stderr).toMatch(/^junctor: .*unknown/m);
});

test("a call that takes too long is given up", async () => {
  const { code, stderr } = await call(["slow", "--timeout", "800ms"]);
  expect(code).toBe(3);
  // On a busy machine the time may be over before the server has answered at all.
  expect(stderr).toMatch(
    /^junctor: .*( 0\.8 s, so it was cancelled| within 800 ms); --timeout SECONDS waits longer\n$/m,
  );
});

test("the server's command sees only the variables it is given", async () => {
  const flags = ["--env", "GIVEN=1", "--env", "PASSED"];
  const env = { PASSED: "2", SECRET: "3" };
  const { stdout } = await junctor(["call", "environment", ...flags, ...own], { env });
  const seen = JSON.parse(stdout) as { readonly [name: string]: string };
  expect(seen).toMatchObject({ GIVEN: "1", PASSED: "2" });
  expect(seen).not.toHaveProperty("SECRET");
});

test("a reader that has had enough is not a failure", async () => {
  const onOutput = (_: string, child: ChildProcess): void => void child.stdout?.destroy();
  const { code, stderr } = await call(["big", "bytes=3000000"], { onOutput });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
});

test("a signal cancels the call on the server", async () => {
  const onOutput = (output: string, child: ChildProcess): void => {
    // Once: a second signal ends the process at once.
    if (output.includes("[5/9]") && !child.killed) child.kill("SIGTERM");
  };
  const before = abortedCalls;
  const { code, stdout } = await call(["slow"], { onOutput });
  expect({ code, stdout }).toEqual({ code: 143, stdout: "" });
  await expect.poll(() => abortedCalls).toBe(before + 1);
});
