// The official SDK, version 1.

import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { runTask } from "./contract.mjs";
import { openSdkV1 } from "./open-sdk-v1.mjs";

await runTask((target) =>
  openSdkV1(
    target.transport === "http"
      ? new StreamableHTTPClientTransport(new URL(target.url))
      : new StdioClientTransport(target),
  ),
);
