// The upstream all gateways are measured in front of: a bare echo that speaks just enough MCP, in both eras.

const info = { name: "echo", version: "1.0.0" };
const capabilities = { tools: {} };
const inputSchema = { type: "object", properties: { message: { type: "string" } }, required: ["message"] };
const tools = ["echo", "large"].map((name) => ({
  name,
  description: "Says again what it is told.",
  inputSchema,
}));
const filler = "x".repeat(2 ** 20);
const meta = { "io.modelcontextprotocol/serverInfo": info };

/** @typedef {{ name: string, arguments: { message: string }, protocolVersion?: string }} Params */

/**
 * The answer to one message as JSON, or undefined when there is none to give.
 *
 * @param {string} text
 * @returns {string | undefined}
 */
export function answer(text) {
  const { id, method, params } = /** @type {{ id?: unknown, method?: string, params: Params }} */ (
    JSON.parse(text)
  );
  if (id === undefined || method === undefined) return undefined;
  const isModern = text.includes('"io.modelcontextprotocol/protocolVersion"');
  const result = resultOf(method, params);
  if (result === undefined)
    return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
  return JSON.stringify({
    jsonrpc: "2.0",
    id,
    result: isModern ? { resultType: "complete", ...result, _meta: meta } : result,
  });
}

/** @param {string} method @param {Params} params */
function resultOf(method, params) {
  switch (method) {
    case "tools/call": {
      const text = params.arguments.message + (params.name === "large" ? filler : "");
      return { content: [{ type: "text", text }] };
    }
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities, serverInfo: info };
    case "server/discover":
      return { supportedVersions: ["2026-07-28"], capabilities, ttlMs: 0, cacheScope: "public" };
    case "tools/list":
      return { tools, ttlMs: 0, cacheScope: "public" };
    case "ping":
      return {};
    default:
      return undefined;
  }
}
