// tmcp as its documentation mounts it on node:http.

import { createServer } from "node:http";
import { createRequestListener } from "@remix-run/node-fetch-server";
import { HttpTransport } from "@tmcp/transport-http";
import { host, port } from "../settings.mjs";
import { createTmcpServer } from "../tmcp-tools.mjs";

const transport = new HttpTransport(createTmcpServer(), { path: "/mcp" });
createServer(
  createRequestListener(
    async (request) => (await transport.respond(request)) ?? new Response(null, { status: 404 }),
  ),
).listen(port, host);
