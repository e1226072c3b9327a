// A server for many clients over HTTP: a streaming tool, structured output, a key for every caller.
//
//   API_KEY=secret PORT=7781 node examples/http-server.mjs
//   npx --no-install junctor call forecast city=Oslo --server http://127.0.0.1:7781/mcp --header "Authorization: Bearer secret"

import { createHash, timingSafeEqual } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createRegistry, createServer, listenHttp, ToolError } from "junctor";
import { z } from "zod";

const registry = createRegistry();

registry.register(
  "forecast",
  {
    description: "The weather of tomorrow.",
    input: z.object({ city: z.string().min(1) }),
    output: z.object({ city: z.string(), celsius: z.number() }),
  },
  async (args, context) => {
    if (args.city === "Atlantis") throw new ToolError("Atlantis is under water. Try a city on land.");
    for (let step = 1; step <= 3; step++) {
      await context.progress(step, 3, `asking station ${step}`);
      // Aborted when the client leaves; pass it to whatever takes long.
      await sleep(20, undefined, { signal: context.signal });
    }
    return { city: args.city, celsius: 21.5 };
  },
);

const digest = (text) => createHash("sha256").update(text).digest();
const key = digest(`Bearer ${process.env.API_KEY ?? "secret"}`);

const listener = await listenHttp(createServer(registry, { name: "weather", version: "1.0.0" }), {
  port: Number(process.env.PORT ?? 7781),
  // Says who is calling; undefined is refused with 401.
  authenticate: (header) =>
    timingSafeEqual(digest(header("authorization") ?? ""), key) ? "the holder of the key" : undefined,
});
console.log(`Listening on ${listener.url}`);

// Calls in flight may finish; then we are gone.
process.once("SIGTERM", () => void listener.close());
