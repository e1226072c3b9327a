// The official SDK v2 as its documentation mounts it on node:http. It serves both eras without sessions, and legacy calls
// always as event streams.

import { createServer } from "node:http";
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
} from "@modelcontextprotocol/node";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { createMcpServer } from "../sdk-v2-tools.mjs";
import { host, port } from "../settings.mjs";

const handler = toNodeHandler(createMcpHandler(createMcpServer));
const isHostAllowed = localhostHostValidation();
const isOriginAllowed = localhostOriginValidation();
createServer((request, response) => {
  if (isHostAllowed(request, response) && isOriginAllowed(request, response))
    void handler(
      /** @type {import("@modelcontextprotocol/node").NodeIncomingMessageLike} */ (request),
      response,
    );
}).listen(port, host);
