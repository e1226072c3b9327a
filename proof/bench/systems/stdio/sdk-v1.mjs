import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createMcpServer } from "../sdk-v1-tools.mjs";

await createMcpServer().connect(new StdioServerTransport());
