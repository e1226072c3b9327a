import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { serveTurns, url } from "./serve-turns.mjs";

const client = new Client({ name: "bench", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(url));
await client.listTools();
serveTurns(async (message) => {
  const { content } = await client.callTool({ name: "echo", arguments: { message } });
  return /** @type {{ text?: string }[]} */ (content)[0]?.text;
});
