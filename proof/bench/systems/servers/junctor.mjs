import { listenHttp } from "../../../../packages/junctor/dist/index.js";
import { createEchoServer } from "../junctor-tools.mjs";
import { host, port } from "../settings.mjs";

await listenHttp(createEchoServer(), { port, host });
