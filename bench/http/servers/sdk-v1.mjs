// The official SDK v1 with a session: one transport and one server for all of it.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { listen } from "../child.mjs";
import { createMcpServer } from "./sdk-v1-tools.mjs";

const enableJsonResponse = process.argv[2] === "json";
const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse });
await createMcpServer().connect(transport);
listen(createServer((request, response) => void transport.handleRequest(request, response)));
