// The official SDK v1 without sessions: a transport and a server for every request, as its examples have it.

import { createServer } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { listen } from "../child.mjs";
import { createMcpServer } from "./sdk-v1-tools.mjs";

const enableJsonResponse = process.argv[2] === "json";
listen(createServer((request, response) => void serve(request, response)));

/** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
async function serve(request, response) {
  const server = createMcpServer();
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse });
  response.on("close", () => void server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response);
}
