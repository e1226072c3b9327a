import { parseArgs } from "node:util";
import { listenHttp, serveStdio, type ServerOptions } from "junctor";
import { createEverythingServer } from "./everything-server.ts";

type Serves = NonNullable<ServerOptions["serves"]>;

const usage =
  "Usage: npm run proof -- conformance server [--port N | --stdio] [--serves both|legacy|modern | --sdk-v2]";

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

if (values["sdk-v2"]) await serveSdkV2();
else await serveOurs(values.serves);

async function serveOurs(serves: Serves): Promise<void> {
  const server = createEverythingServer({ serves });
  if (values.stdio) await serveStdio(server);
  else await listenUntilSignal(await listenHttp(server, { port }));
}

/** Imports what it needs only now: a gateway that shares a process with no other session starts many. */
async function serveSdkV2(): Promise<void> {
  if (values.stdio) {
    const sdk = await import("@modelcontextprotocol/server/stdio");
    const { createSdkV2Factory } = await import("./sdk-v2-server.ts");
    sdk.serveStdio(createSdkV2Factory());
  } else {
    const { listenSdkV2 } = await import("./sdk-v2-listen.ts");
    await listenUntilSignal(await listenSdkV2(port));
  }
}

async function listenUntilSignal(listener: { readonly url: string; close(): Promise<void> }): Promise<void> {
  console.log(`listening on ${listener.url}`);
  await new Promise((resolve) => {
    process.once("SIGINT", resolve);
    process.once("SIGTERM", resolve);
  });
  await listener.close();
}

function isServes(value: string): value is Serves {
  return value === "both" || value === "legacy" || value === "modern";
}
