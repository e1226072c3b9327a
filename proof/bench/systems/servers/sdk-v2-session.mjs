// The official SDK v2 with a session, which it has for legacy clients only: one transport and one server for all of it.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { createMcpServer } from "../sdk-v2-tools.mjs";
import { host, isJson, port } from "../settings.mjs";

const transport = new NodeStreamableHTTPServerTransport({
  sessionIdGenerator: randomUUID,
  enableJsonResponse: isJson,
});
await createMcpServer().connect(transport);
createServer((request, response) => void transport.handleRequest(request, response)).listen(port, host);
