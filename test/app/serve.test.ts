// `junctor serve APP`: an app that a file exports, over HTTP and on standard streams.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { connect, textOf } from "../../packages/client/src/index.ts";
import { root } from "../source-graph.ts";
import { bin, junctor } from "../support/junctor-bin.ts";

const project = mkdtempSync(join(tmpdir(), "junctor-app-"));
mkdirSync(join(project, "node_modules"));
symlinkSync(join(root, "packages/junctor"), join(project, "node_modules/junctor"), "junction");
symlinkSync(join(root, "node_modules/@junctor"), join(project, "node_modules/@junctor"), "junction");
afterAll(() => rmSync(project, { recursive: true, force: true }));

const write = (name: string, code: string): string => {
  const file = join(project, name);
  writeFileSync(file, code);
  return file;
};
const app = write(
  "app.mjs",
  `import { createApp } from "junctor";
export default createApp({ name: "greeter", version: "1.0.0" }).tool("hi", {}, () => "hello");
`,
);

test("an app is served over HTTP, until a signal", async () => {
  const child = spawn(process.execPath, [bin, "serve", app, "--port", "0"]);
  const exited = once(child, "exit");
  const [url] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  await using client = await connect(url.trim());
  expect(textOf(await client.callTool("hi"))).toBe("hello");
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
});

test("an app is served on standard streams", async () => {
  await using client = await connect({ command: process.execPath, args: [bin, "serve", app, "--stdio"] });
  expect(textOf(await client.callTool("hi"))).toBe("hello");
});

test.each([
  ["a file that is not there", [join(project, "none.mjs")], /^junctor: there is no file .*none\.mjs\n$/],
  [
    "a file that exports no app",
    [write("empty.mjs", "export default 1;")],
    /empty\.mjs exports no app: write export default createApp\(/,
  ],
  [
    "a syntax error, with its place",
    [write("broken.mjs", "const one = 1;\nconst = ;\n")],
    /broken\.mjs cannot be loaded: .*broken\.mjs:2\)\n$/,
  ],
  [
    "an error of the program, with its place",
    [write("throws.mjs", 'const one = 1;\nthrow new Error("no database");\n')],
    /throws\.mjs cannot be loaded: no database \(.*throws\.mjs:2:7\)\n$/,
  ],
  ["two apps", [app, app], /serve takes one app/],
  ["a flag for configs", [app, "--profile", "x"], /--profile is not for an app: leave it out/],
  ["an address without a user", [app, "--host", "0.0.0.0", "--port", "0"], /0\.0\.0\.0/],
  ["a config without its flag", [join(project, "x.json")], /write --config .*x\.json/],
])("%s is told in one message", async (_, args, message) => {
  const { code, stderr } = await junctor(["serve", ...args]);
  expect(stderr).toMatch(message);
  expect(stderr.trim().split("\n")).toHaveLength(1);
  expect(code).not.toBe(0);
});
