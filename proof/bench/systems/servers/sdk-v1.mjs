// The official SDK v1 with a session: one transport and one server for all of it.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createMcpServer } from "../sdk-v1-tools.mjs";
import { host, isJson, port } from "../settings.mjs";

const transport = new StreamableHTTPServerTransport({
  sessionIdGenerator: randomUUID,
  enableJsonResponse: isJson,
});
await createMcpServer().connect(transport);
createServer((request, response) => void transport.handleRequest(request, response)).listen(port, host);
