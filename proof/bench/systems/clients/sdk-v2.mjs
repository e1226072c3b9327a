import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { serveTurns, url } from "./serve-turns.mjs";

const client = new Client(
  { name: "bench", version: "1.0.0" },
  { versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
await client.connect(new StreamableHTTPClientTransport(url));
await client.listTools();
serveTurns(async (message) => {
  const { content } = await client.callTool({ name: "echo", arguments: { message } });
  return content[0]?.type === "text" ? content[0].text : undefined;
});
