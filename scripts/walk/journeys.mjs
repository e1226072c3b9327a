import { join } from "node:path";
import { root } from "../setup.mjs";

const child = join(root, "test/fixtures/walk-server.mjs");
const inputSchema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

/** The calls that are followed. `prepare` takes the library and returns what makes one call. */
export const journeys = [
  {
    name: "tool",
    title: "A modern call over HTTP of a registered tool",
    goal: 20,
    async prepare({ createRegistry, createServer, listenHttp }) {
      const registry = createRegistry();
      registry.register("echo", { input: inputSchema }, ({ text }) => text);
      const server = createServer(registry, { name: "walk", version: "1.0.0" });
      const listener = await listenHttp(server, { port: 0 });
      return { call: () => callModern(listener.port, "echo"), close: () => listener.close() };
    },
  },
  {
    name: "gateway",
    title: "A modern call over HTTP through the gateway to a child on stdio",
    goal: 34,
    async prepare(junctor) {
      const { port, close } = await startGateway(junctor);
      return { call: () => callModern(port, "walk__echo"), close };
    },
  },
  {
    name: "question",
    title: "A legacy call over HTTP through the gateway to a modern server on stdio that asks the user",
    goal: 44,
    async prepare(junctor) {
      const { port, close } = await startGateway(junctor);
      const session = await initialize(port);
      return { call: () => callLegacy(port, session, "walk__ask"), close };
    },
  },
];

async function startGateway({ createGateway, listenHttp }) {
  const gateway = await createGateway({ mcpServers: { walk: { command: process.execPath, args: [child] } } });
  await gateway.ready;
  const listener = await listenHttp(gateway.server, { port: 0 });
  const close = async () => {
    await listener.close();
    await gateway.close();
  };
  return { port: listener.port, close };
}

const clientInfo = { name: "walk", version: "1.0.0" };

async function callModern(port, name) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": clientInfo,
  };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
  const params = { name, arguments: { text: "hello" }, _meta };
  const reply = await post(port, headers, { jsonrpc: "2.0", id: 1, method: "tools/call", params });
  assertSays(await reply.json(), "hello");
}

async function initialize(port) {
  const params = { protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo };
  const reply = await post(port, {}, { jsonrpc: "2.0", id: 0, method: "initialize", params });
  await reply.text();
  const session = {
    "mcp-session-id": reply.headers.get("mcp-session-id"),
    "mcp-protocol-version": "2025-11-25",
  };
  await (await post(port, session, { jsonrpc: "2.0", method: "notifications/initialized" })).text();
  return session;
}

/** Calls a tool and answers what it asks meanwhile. */
async function callLegacy(port, session, name) {
  const params = { name, arguments: { text: "hello" } };
  const reply = await post(port, session, { jsonrpc: "2.0", id: 1, method: "tools/call", params });
  const answered = [];
  let rest = "";
  for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split("\n\n");
    rest = events.pop();
    for (const data of events.map((event) => /^data: ?(\{.*)$/m.exec(event)?.[1]).filter(Boolean)) {
      const message = JSON.parse(data);
      if (message.method === undefined) assertSays(message, "Ada");
      else answered.push(answer(port, session, message));
    }
  }
  await Promise.all(answered);
  if (answered.length !== 1) throw new Error(`The server asked ${answered.length} times, not once`);
}

async function answer(port, session, { id, method }) {
  if (method !== "elicitation/create") throw new Error(`The server sent ${method}`);
  const result = { action: "accept", content: { name: "Ada" } };
  await (await post(port, session, { jsonrpc: "2.0", id, result })).text();
}

function assertSays(response, text) {
  if (response.result?.content?.[0]?.text === text) return;
  throw new Error(`The call failed: ${JSON.stringify(response)}`);
}

async function post(port, headers, message) {
  return fetch(`http://127.0.0.1:${port}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers,
    },
    body: JSON.stringify(message),
  });
}
