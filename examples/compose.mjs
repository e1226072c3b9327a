// Two servers and a few tools of our own behind one endpoint, with middleware around all of them. A client is a provider,
// so it composes like a registry does.
//
//   npx --no-install junctor tools -- node examples/compose.mjs

import { fileURLToPath } from "node:url";
import { compose, connect, createRegistry, createServer, serveStdio, withMiddleware } from "junctor";

const example = (file) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(file, import.meta.url))],
});

const local = createRegistry();
local.register("ping", { description: "Says pong." }, () => "pong");

const hello = await connect(example("hello-server.mjs"));
const bookings = await connect(example("ask-the-user.mjs"));

// The tool `add` of `hello` is now `hello__add`.
const all = compose({ hello, bookings, local });

const audit = {
  afterCall: (call, end) => console.error(`${call.name}: ${end.kind}`),
};
const withoutCounting = {
  // What is not listed cannot be called either.
  filterTools: (tools) => tools.filter((tool) => tool.name !== "hello__count"),
};

await serveStdio(
  createServer(withMiddleware(all, [audit, withoutCounting]), { name: "all-of-it", version: "1.0.0" }),
);
await Promise.all([hello, bookings].map((client) => client.close()));
