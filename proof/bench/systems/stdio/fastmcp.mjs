import { createFastServer } from "../fastmcp-tools.mjs";

await createFastServer().start({ transportType: "stdio" });
