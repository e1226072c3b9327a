import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client as ModernClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernTransport } from "@modelcontextprotocol/client/stdio";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { expect, test } from "vitest";
import { root } from "../source-graph.ts";
import { createDaemonHome, type DaemonHome } from "../support/daemon-home.ts";
import { bin } from "../support/junctor-bin.ts";

// The Inspector and mcporter are packages of the field test; JUNCTOR_CLIENTS names another folder that has them.
const packages = [process.env["JUNCTOR_CLIENTS"] ?? "", join(root, "field", "node_modules")].find((folder) =>
  existsSync(join(folder, "mcporter")),
);

test.runIf(process.platform === "linux")(
  `clients of ${packages === undefined ? "three kinds (the Inspector and mcporter are not installed)" : "five kinds"} share twelve servers of one daemon`,
  async () => {
    await using home = createDaemonHome({ mcpServers: {} });
    home.write({ mcpServers: twelveServers(home.folder), junctor: { daemon: { idleMs: 500 } } });
    const env = { ...(process.env as { [name: string]: string }), ...home.env };
    const launch = { command: process.execPath, args: [bin, "attach"], env, cwd: home.folder };
    const pipe = home.attach({ args: ["--client", "pipe"] });
    await pipe.shake();
    expect(await pipe.call("everything1__echo", { message: "pipe" })).toBe("Echo: pipe");

    const legacy = new LegacyClient({ name: "sdk-v1", version: "1" });
    await legacy.connect(new LegacyTransport({ ...launch, stderr: "ignore" }));
    const modern = new ModernClient({ name: "sdk-v2", version: "1" });
    await modern.connect(new ModernTransport({ ...launch, stderr: "ignore" }));
    for (const client of [legacy, modern]) {
      const { content } = await client.callTool({ name: "everything1__echo", arguments: { message: "sdk" } });
      expect(content).toMatchObject([{ text: "Echo: sdk" }]);
    }
    if (packages !== undefined) {
      const asked = [
        "--method",
        "tools/call",
        "--tool-name",
        "everything1__echo",
        "--tool-arg",
        "message=inspector",
      ];
      const inspector = join(packages, ".bin", "mcp-inspector");
      const inspected = await runProgram(home, inspector, [
        "--cli",
        process.execPath,
        bin,
        "attach",
        ...asked,
      ]);
      expect(inspected).toContain("Echo: inspector");
      const file = join(home.folder, "mcporter.json");
      writeFileSync(
        file,
        JSON.stringify({ mcpServers: { j: { command: process.execPath, args: [bin, "attach"] } } }),
      );
      const words = ["--config", file, "call", "j.everything1__echo", "message:mcporter"];
      expect(await runProgram(home, join(packages, ".bin", "mcporter"), words)).toContain("Echo: mcporter");
    }
    const { result } = (await pipe.request("tools/list")) as {
      result?: { tools: readonly { name: string }[] };
    };
    expect(new Set(result?.tools.map(({ name }) => name.split("__")[0])).size).toBe(12);
    expect(countServers(home)).toBe(12);
    expect(home.daemons().length).toBe(1);

    await Promise.all([legacy.close(), modern.close(), pipe.leave()]);
    await expect.poll(() => home.processes()).toEqual([]);
  },
);

function twelveServers(folder: string): object {
  const script = (name: string): string =>
    join(root, "node_modules", "@modelcontextprotocol", `server-${name}`, "dist", "index.js");
  const command = process.execPath;
  const numbered = [1, 2, 3, 4].flatMap((number): [string, object][] => [
    [`everything${number}`, { command, args: [script("everything")] }],
    [
      `memory${number}`,
      { command, args: [script("memory")], env: { MEMORY_FILE_PATH: join(folder, `m${number}`) } },
    ],
    [`files${number}`, { command, args: [script("filesystem"), folder] }],
  ]);
  return Object.fromEntries(numbered);
}

function countServers(home: DaemonHome): number {
  return home.processes().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("/server-");
    } catch {
      return false;
    }
  }).length;
}

function runProgram(home: DaemonHome, program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { env: { ...process.env, ...home.env }, cwd: home.folder });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stdin.end();
  return new Promise((resolve) => child.once("close", () => resolve(said)));
}
