// Connects to the server of one bomb as a client that checks arguments, and calls its tool: `node bomb-client.mjs NAME`. Prints how it
// ended, and the processor time it took.

import { fileURLToPath } from "node:url";
import { connect } from "../../../packages/junctor/dist/index.js";
import { bombs } from "./bombs.mjs";

const [, , name = ""] = process.argv;
const args = [fileURLToPath(new URL("bombs.mjs", import.meta.url)), "--serve", name];
const client = await connect({ command: process.execPath, args }, { onWarning: () => {} });
const before = process.cpuUsage();
const call = async () => {
  await client.listTools();
  return client.callTool(name, JSON.parse(bombs[name][1]));
};
let ended = "called";
try {
  await call();
} catch (error) {
  ended = `refused (${error.code ?? error.name})`;
}
const { user, system } = process.cpuUsage(before);
process.stdout.write(`${JSON.stringify({ ended, cpuMs: Math.round((user + system) / 1000) })}\n`);
await client.close();
process.exit(0);
