import { serveStdio } from "../../../../packages/junctor/dist/index.js";
import { createEchoServer } from "../junctor-tools.mjs";

await serveStdio(createEchoServer());
