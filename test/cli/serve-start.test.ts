// `serve` claims its port before it starts anything, and answers while its servers start.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startCliGateway } from "../gateway/support/cli-gateway.ts";
import { connectLegacy } from "../support/http-wire.ts";
import { bin, demoServer, junctor } from "../support/junctor-bin.ts";
import { isAlive } from "../support/processes.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "junctor-serve-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const hasScript = spawnSync("script", ["--version"]).status === 0;
const inFolder = (name: string): string => join(folder, name);
const [node = "", ...demo] = demoServer;

/** A config whose only server leaves a mark when it is started, and goes on when it finds another. */
function writeConfig(): string {
  const file = inFolder("mcp.json");
  const script = `
    const { existsSync, writeFileSync } = require("node:fs");
    const { spawn } = require("node:child_process");
    writeFileSync(${JSON.stringify(inFolder("started"))}, "");
    const timer = setInterval(() => {
      if (!existsSync(${JSON.stringify(inFolder("go-on"))})) return;
      clearInterval(timer);
      spawn(process.execPath, ${JSON.stringify(demo)}, { stdio: "inherit" });
    }, 20);`;
  writeFileSync(file, JSON.stringify({ mcpServers: { slow: { command: node, args: ["-e", script] } } }));
  return file;
}

function take(port = 0): Promise<Server> {
  const server = createServer();
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}

test.each(["--port", "--tcp"])(
  "with %s of a port that is taken it fails and starts nothing",
  async (flag) => {
    const taken = await take();
    const { port } = taken.address() as { readonly port: number };
    try {
      const { code, stderr } = await junctor(["serve", "--config", writeConfig(), flag, String(port)]);
      expect(stderr).toContain(`choose another port with ${flag} PORT`);
      expect(code).toBe(3);
      expect(existsSync(inFolder("started"))).toBe(false);
    } finally {
      taken.close();
    }
  },
);

test("it answers while its servers start, and says how they are when they are up", async () => {
  await using gateway = startCliGateway(writeConfig(), "--port", "0");
  using client = await connectLegacy(await gateway.port);
  expect(client.sessionId).toBeDefined();
  expect(gateway.output()).toContain("and starts 1 server of ");
  expect(gateway.output()).not.toContain("servers are up");
  writeFileSync(inFolder("go-on"), "");
  const countTools = async (): Promise<number> => {
    const { result } = await client.ask({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    return (result as { readonly tools: readonly object[] }).tools.length;
  };
  await expect.poll(countTools).toBe(4);
  await expect.poll(gateway.output).toMatch(/1 of 1 server is up:\n\n {2}slow {2}up {2}4 tools/);
});

test.each(["SIGTERM", "SIGINT"] as const)("%s ends it while its servers start", async (signal) => {
  await using gateway = startCliGateway(writeConfig(), "--port", "0");
  await gateway.port;
  await expect.poll(() => existsSync(inFolder("started"))).toBe(true);
  gateway.process.kill(signal);
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
});

test.runIf(hasScript)("closing its terminal ends it, though SIGHUP alone does not", async () => {
  const file = writeConfig();
  const command = [node, bin, "serve", "--config", file, "--port", "0"].join(" ");
  let output = "";
  const terminal = spawn("script", ["-qec", `echo junctor at $$; exec ${command}`, "/dev/null"]);
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await expect.poll(() => output).toContain("Ctrl-C stops it");
  const pid = Number(/junctor at (\d+)/.exec(output)?.[1]);
  process.kill(pid, "SIGHUP");
  await expect.poll(() => existsSync(inFolder("started"))).toBe(true);
  expect(isAlive(pid)).toBe(true);
  terminal.kill("SIGKILL");
  await expect.poll(() => isAlive(pid)).toBe(false);
});
