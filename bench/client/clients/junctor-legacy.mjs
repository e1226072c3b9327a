import { connect } from "junctor";
import { serveCalls, url } from "../serve-calls.mjs";

const client = await connect(url, { revision: "2025-11-25" });
serveCalls(async (message) => {
  const { content } = await client.callTool("echo", { message });
  return content[0]?.type === "text" ? content[0].text : undefined;
});
