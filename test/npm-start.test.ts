// A signal to `npm start` ends everything it started.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { familyOf } from "./gateway/support/cli-gateway.ts";
import { statefulServer } from "./gateway/support/servers.ts";
import { root } from "./source-graph.ts";
import { isAlive } from "./support/processes.ts";

let folder: string;
let config: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-npm-start-"));
  config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { one: statefulServer() } }));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Who gets the signal. */
type Aim = "npm" | "the whole group" | "the program";

describe.runIf(process.platform === "linux")("npm start", () => {
  test.each<readonly [NodeJS.Signals, Aim]>([
    ["SIGTERM", "npm"],
    ["SIGHUP", "npm"],
    ["SIGTERM", "the whole group"],
    ["SIGINT", "the whole group"],
    ["SIGTERM", "the program"],
    ["SIGINT", "the program"],
  ])(
    "leaves nothing behind after %s to %s",
    async (signal, aim) => {
      // A session of its own, as a service manager gives it.
      const npm = spawn("npm", ["start", "--", "--config", config, "--port", "0"], {
        cwd: root,
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const exited = once(npm, "exit");
      let output = "";
      for (const stream of [npm.stdout, npm.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => (output += text));
      await expect.poll(() => output).toContain("1 of 1 server is up");
      const family = familyOf(npm.pid!);
      const program = family.pids.find((pid) => isProgram(pid))!;
      process.kill(aim === "npm" ? npm.pid! : aim === "the program" ? program : -npm.pid!, signal);
      await exited;
      await expect.poll(() => family.left()).toEqual([]);
      expect([npm.pid!, program].filter(isAlive)).toEqual([]);
    },
    90_000,
  );
});

/** Whether a process is the one that runs the gateway, and not npm or its shell. */
function isProgram(pid: number): boolean {
  const [command, script] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  return command?.endsWith("node") === true && script === "scripts/start.mjs";
}
