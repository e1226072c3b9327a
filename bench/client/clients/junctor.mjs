import { connect } from "junctor";
import { serveCalls, url } from "../serve-calls.mjs";

const client = await connect(url);
serveCalls(async (message) => {
  const { content } = await client.callTool("echo", { message });
  return content[0]?.type === "text" ? content[0].text : undefined;
});
