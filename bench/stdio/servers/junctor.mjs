import { createRegistry, createServer, serveStdio } from "junctor";
import * as z from "zod";

const registry = createRegistry();
registry.register("echo", { input: z.object({ message: z.string() }) }, ({ message }) => message);
await serveStdio(createServer(registry, { name: "echo", version: "1.0.0" }));
