// The command line of the MCP Inspector. Each command is a process and a connection of its own: over stdio, each one starts
// a gateway.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { runTask } from "./contract.mjs";

const launcher = fileURLToPath(
  new URL("../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", import.meta.url),
);
const run = promisify(execFile);

await runTask(async (target, { callMs }) => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-field-inspector-"));
  const config = join(folder, "mcp.json");
  const server =
    target.transport === "http" ? { type: "streamable-http", url: target.url } : { ...target, type: "stdio" };
  writeFileSync(config, JSON.stringify({ mcpServers: { junctor: server } }));

  /** @param {string[]} words */
  const ask = async (...words) => {
    const args = [launcher, "--cli", "--config", config, "--server", "junctor", "--format", "json", ...words];
    const { stdout } = await run(process.execPath, args, { maxBuffer: 64 * 2 ** 20, timeout: callMs });
    return JSON.parse(stdout);
  };
  return {
    list: async () => {
      const { result } = await ask("--method", "tools/list");
      return result.tools.map((/** @type {{ name: string }} */ { name }) => name);
    },
    call: async (tool, args) => {
      const words = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(args)];
      const { result } = await ask(...words);
      return result;
    },
    close: async () => rmSync(folder, { recursive: true }),
  };
});
