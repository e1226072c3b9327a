// A client: connects to a server of any age, lists its tools, calls one, streams another.
//
//   node examples/client.mjs                                  starts examples/hello-server.mjs
//   node examples/client.mjs http://127.0.0.1:7780/mcp        (it calls add and count, so it needs a server with those)

import { fileURLToPath } from "node:url";
import { connect, TimeoutError, ValidationError } from "junctor";

const hello = fileURLToPath(new URL("hello-server.mjs", import.meta.url));
const target = process.argv[2] ?? { command: process.execPath, args: [hello] };

const client = await connect(target, { timeoutMs: 10_000, onWarning: (text) => console.error(text) });
try {
  const { serverInfo, mode } = await client.agreement();
  console.log(`${serverInfo?.name} speaks ${mode.revision}`);

  for (const { name, description } of await client.listTools()) console.log(`- ${name}: ${description}`);

  const { content } = await client.callTool("add", { a: 2, b: 3 });
  console.log("add:", content[0].text);

  for await (const part of client.streamTool("count", { to: 3 })) {
    if (part.kind === "progress") console.log("so far:", part.message);
    if (part.kind === "result") console.log("count:", part.result.content[0].text);
  }

  // Wrong arguments are found before anything is sent.
  await client.callTool("add", { a: "two", b: 3 });
} catch (error) {
  if (error instanceof ValidationError) console.log("refused:", error.issues[0].path, error.delivery);
  else if (error instanceof TimeoutError) console.log("too slow");
  else throw error;
} finally {
  // In TypeScript and on Node 24 write `await using client = …` instead.
  await client.close();
}
