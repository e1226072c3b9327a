// `junctor open`, and the address of the page in `junctor status`.
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CliGateway, startCliGateway } from "../gateway/support/cli-gateway.ts";
import { statefulServer } from "../gateway/support/servers.ts";
import { junctor, junctorOnTerminal } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-open-"));
const opened = join(folder, "opened");
const config = join(folder, "mcp.json");
writeFileSync(config, JSON.stringify({ mcpServers: { store: statefulServer() } }));
afterAll(() => rmSync(folder, { recursive: true }));

/** The environment of a person at a screen; the browser writes down what it is to open. */
function screen(exitCode = 0): { readonly [name: string]: string } {
  const program = join(folder, "xdg-open");
  writeFileSync(program, `#!/bin/sh\necho "$@" > ${opened}\nexit ${exitCode}\n`);
  chmodSync(program, 0o700);
  return { DISPLAY: ":0", PATH: `${folder}:${process.env["PATH"]}` };
}
const noScreen = { DISPLAY: "", WAYLAND_DISPLAY: "", BROWSER: "" };

test("nothing runs", async () => {
  const { code, stderr } = await junctor(["open"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^junctor: no gateway and no daemon of yours runs; junctor serve starts one.*\n$/);
});

describe.runIf(process.platform === "linux")("the page of a gateway that runs", () => {
  let gateway: CliGateway;
  let page: string;
  beforeAll(async () => {
    gateway = startCliGateway(config, "--port", "0");
    await gateway.port;
    // It says where it listens once the page can be opened.
    page = (await junctor(["open", "--print"])).stdout.trim();
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  test("is printed with --print", () => {
    expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#key=\S+$/);
  });

  test("has a key that the admin API takes", async () => {
    const { origin, hash } = new URL(page);
    const authorization = `Bearer ${hash.replace("#key=", "")}`;
    expect((await fetch(`${origin}/api/status`, { headers: { authorization } })).status).toBe(200);
  });

  test("is opened by a file that only its user can read, so that no argument has the key", async () => {
    const { code, stdout, stderr } = await junctor(["open"], { env: screen() });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).toMatch(/^Opened http:\/\/127\.0\.0\.1:\d+\/ in your browser/);
    const address = readFileSync(opened, "utf8").trim();
    expect(address).toMatch(/^file:\/\/\/\S+\.html$/);
    const file = fileURLToPath(address);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "utf8")).toContain(`url=${page}"`);
  });

  test.each([
    ["there is no screen", () => noScreen],
    ["the browser cannot be opened", () => screen(3)],
    ["there is no program that opens one", () => ({ DISPLAY: ":0", PATH: "" })],
  ])("is printed where %s", async (_, env) => {
    const { code, stdout } = await junctor(["open"], { env: { ...noScreen, ...env() } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${page}\n` });
  });

  test("is in the status: with its key on a terminal, without it in a pipe", async () => {
    const piped = await junctor(["status"]);
    expect(piped.stdout).toContain(`\nPage: ${new URL("/", page).href} (junctor open opens it)\n`);
    expect(piped.stdout).not.toContain("key=");
    const shown = await junctorOnTerminal(["status"], { stdin: "" });
    expect(shown.stdout).toContain(`Page: ${page}`);
  });
});

test.runIf(process.platform === "linux")("a gateway without a page says how it gets one", async () => {
  writeFileSync(config, JSON.stringify({ mcpServers: {}, junctor: {} }));
  await using gateway = startCliGateway(config, "--tcp", "0");
  await expect.poll(async () => (await junctor(["open"])).stderr).toContain("has no page");
  const { code, stderr } = await junctor(["open"]);
  expect(code).toBe(2);
  expect(stderr).toContain(`process ${gateway.process.pid}`);
  expect(stderr).toContain('write "junctor": { "admin": { "port": 7781 } }');
});
