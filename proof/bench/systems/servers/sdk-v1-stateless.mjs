// The official SDK v1 without sessions: a transport and a server for every request, as its examples have it.

import { createServer } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpServer } from "../sdk-v1-tools.mjs";
import { host, isJson, port } from "../settings.mjs";

createServer((request, response) => void serve(request, response)).listen(port, host);

/** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
async function serve(request, response) {
  const server = createMcpServer();
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: isJson });
  response.on("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}
