import { connect } from "../../../../packages/junctor/dist/index.js";
import { serveTurns, url } from "./serve-turns.mjs";

const client = await connect(url, { revision: "2025-11-25" });
serveTurns(async (message) => {
  const { content } = await client.callTool("echo", { message });
  return content[0]?.type === "text" ? content[0].text : undefined;
});
