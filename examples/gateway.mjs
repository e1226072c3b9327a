// A gateway in a program: two servers and a few tools of our own behind one URL, and a client that calls through it.
//
//   node examples/gateway.mjs
//
// The same from the command line, with the servers in a file: npx --no-install junctor serve --config FILE

import { fileURLToPath } from "node:url";
import { connect, createGateway, createRegistry, listenHttp } from "junctor";

const example = (file) => ({
  command: process.execPath,
  args: [fileURLToPath(new URL(file, import.meta.url))],
});

const local = createRegistry();
local.register("ping", { description: "Says pong." }, () => "pong");

// What stands in a config file, as an object.
const config = {
  mcpServers: { hello: example("hello-server.mjs"), bookings: example("ask-the-user.mjs") },
  junctor: { servers: { hello: { tools: { count: { hide: true } } } } },
};

// Throws a ConfigError that lists everything that is wrong with the config.
const gateway = await createGateway(config, {
  local: { local },
  firstListMs: 30_000, // long enough for all of them; after the usual 20 s it goes on without those that are slow
});
const listener = await listenHttp(gateway.server, { port: 0 });
await gateway.ready;
for (const { name, status, revision } of gateway.status()) console.log(`${name} is ${status}, ${revision}`);

const client = await connect(listener.url);
try {
  console.log((await client.listTools()).map(({ name }) => name).join(" "));

  const { content } = await client.callTool("hello__add", { a: 2, b: 3 });
  console.log("hello__add:", content[0].text);

  // What is hidden cannot be called either.
  const [hidden] = await Promise.allSettled([client.callTool("hello__count", { to: 3 })]);
  console.log(hidden.reason.message);

  // Another config while it runs: only what changed is touched.
  await gateway.update({ mcpServers: { hello: config.mcpServers.hello } });
  console.log((await client.listTools()).map(({ name }) => name).join(" "));
} finally {
  await client.close();
  await listener.close(); // calls in flight may finish
  await gateway.close(); // ends the servers and their processes
}
