// mcp-proxy's command line fronts stdio servers only; this fronts an HTTP one with its library, as its documentation has it.
//
//   node mcp-proxy-http.mjs PORT URL

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Server } from "@modelcontextprotocol/server";
import { proxyServer, startHTTPServer } from "mcp-proxy";

const [port, url = ""] = process.argv.slice(2);
const client = new Client({ name: "mcp-proxy", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const capabilities = client.getServerCapabilities() ?? {};

await startHTTPServer({
  host: "127.0.0.1",
  port: Number(port),
  createServer: async () => {
    const server = new Server(client.getServerVersion() ?? { name: "echo", version: "1.0.0" }, {
      capabilities,
    });
    await proxyServer({ client, server, serverCapabilities: capabilities });
    return server;
  },
});
