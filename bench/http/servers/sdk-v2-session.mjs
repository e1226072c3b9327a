// The official SDK v2 with a session, which it has for legacy clients only: one transport and one server for all of it.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { listen } from "../child.mjs";
import { createMcpServer } from "./sdk-v2-tools.mjs";

const enableJsonResponse = process.argv[2] === "json";
const transport = new NodeStreamableHTTPServerTransport({
  sessionIdGenerator: randomUUID,
  enableJsonResponse,
});
await createMcpServer().connect(transport);
listen(createServer((request, response) => void transport.handleRequest(request, response)));
