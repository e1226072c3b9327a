// The gateway with tools of its own process, as `npm start` without a config has them.
import { createGateway, listenHttp } from "../../../../packages/junctor/dist/index.js";
import { createEchoRegistry } from "../junctor-tools.mjs";
import { host, port } from "../settings.mjs";

const gateway = await createGateway({ mcpServers: {} }, { local: { own: createEchoRegistry() } });
await gateway.ready;
await listenHttp(gateway.server, { port, host });
