import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createMcpServer } from "../sdk-v2-tools.mjs";

serveStdio(createMcpServer);
