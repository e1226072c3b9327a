// The server every client is measured against: ours, in a process of its own.

import { createRegistry, createServer, listenHttp } from "junctor";
import * as z from "zod";

const registry = createRegistry();
registry.register("echo", { input: z.object({ message: z.string() }) }, ({ message }) => message);
const listener = await listenHttp(createServer(registry, { name: "echo", version: "1.0.0" }), { port: 0 });
process.on("disconnect", () => void listener[Symbol.asyncDispose]());
process.send?.(listener.port);
