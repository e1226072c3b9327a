import { createFastServer } from "../fastmcp-tools.mjs";
import { host, isJson, port } from "../settings.mjs";

await createFastServer().start({
  transportType: "httpStream",
  httpStream: { port, host, enableJsonResponse: isJson },
});
