// mcp-remote: a server over stdio for clients that know nothing else, which passes all on to our URL. Driven by the
// official SDK, version 1.

import { fileURLToPath } from "node:url";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { runTask } from "./contract.mjs";
import { openSdkV1 } from "./open-sdk-v1.mjs";

const bridge = fileURLToPath(new URL("../node_modules/mcp-remote/dist/proxy.js", import.meta.url));

await runTask((target) => {
  if (target.transport !== "http") throw new Error("mcp-remote reaches servers by URL only");
  const args = [bridge, target.url, "--allow-http", "--transport", "http-only"];
  const env = /** @type {Record<string, string>} */ ({ ...process.env });
  return openSdkV1(new StdioClientTransport({ command: process.execPath, args, env }));
});
