import { parseArgs } from "node:util";
import { listenHttp, serveStdio, type ServerOptions } from "junctor";
import { createEverythingServer } from "./everything-server.ts";

const usage = "Usage: npm run conformance:server -- [--port N | --stdio] [--serves both|legacy|modern]";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    serves: { type: "string", default: "both" },
  },
});
const port = Number(values.port);
if (!isServes(values.serves) || !Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(usage);
  process.exit(2);
}

const server = createEverythingServer({ serves: values.serves });
if (values.stdio) {
  await serveStdio(server);
} else {
  await using listener = await listenHttp(server, { port });
  console.log(`listening on ${listener.url}`);
  await new Promise((resolve) => {
    process.once("SIGINT", resolve);
    process.once("SIGTERM", resolve);
  });
}

function isServes(value: string): value is NonNullable<ServerOptions["serves"]> {
  return value === "both" || value === "legacy" || value === "modern";
}
