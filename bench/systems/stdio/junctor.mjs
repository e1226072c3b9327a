import { serveStdio } from "../../../dist/index.js";
import { createEchoServer } from "../junctor-tools.mjs";

await serveStdio(createEchoServer());
