import { parseArgs } from "node:util";
import { serveStdio as serveSdkV2Stdio } from "@modelcontextprotocol/server/stdio";
import { listenHttp, serveStdio, type ServerOptions } from "junctor";
import { createEverythingServer } from "./everything-server.ts";
import { listenSdkV2 } from "./sdk-v2-listen.ts";
import { createSdkV2Factory } from "./sdk-v2-server.ts";

const usage =
  "Usage: npm run conformance:server -- [--port N | --stdio] [--serves both|legacy|modern | --sdk-v2]";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    serves: { type: "string", default: "both" },
    "sdk-v2": { type: "boolean", default: false },
  },
});
const port = Number(values.port);
if (!isServes(values.serves) || !Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(usage);
  process.exit(2);
}

if (values["sdk-v2"]) {
  if (values.stdio) serveSdkV2Stdio(createSdkV2Factory());
  else await listenUntilSignal(await listenSdkV2(port));
} else {
  const server = createEverythingServer({ serves: values.serves });
  if (values.stdio) await serveStdio(server);
  else await listenUntilSignal(await listenHttp(server, { port }));
}

async function listenUntilSignal(listener: { readonly url: string; close(): Promise<void> }): Promise<void> {
  console.log(`listening on ${listener.url}`);
  await new Promise((resolve) => {
    process.once("SIGINT", resolve);
    process.once("SIGTERM", resolve);
  });
  await listener.close();
}

function isServes(value: string): value is NonNullable<ServerOptions["serves"]> {
  return value === "both" || value === "legacy" || value === "modern";
}
