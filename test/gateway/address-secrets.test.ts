// The address of a server over HTTP, with every token in it, and its headers stay with the gateway, however the server fails.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { callTool } from "../support/use-provider.ts";

const secrets = ["path-s3cret", "query-s3cret", "header-s3cret", "host-s3cret"];
const page = (url: string): string => `<html>${url} header-s3cret</html>`;

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

type React = (
  url: string,
  id: number,
) => { readonly status?: number; readonly headers?: object; readonly body?: string } | "reset";

/** Failures of a server that is reached; `id` is that of the request. */
const reactions: { readonly [kind: string]: React } = {
  "a redirect": (url) => ({ status: 307, headers: { location: `http://127.0.0.1:9${url}` } }),
  "a refusal": (url) => ({ status: 401, headers: { "www-authenticate": `Bearer ${url}` }, body: page(url) }),
  "no such page": (url) => ({ status: 404, body: page(url) }),
  "a fault": (url) => ({ status: 500, body: page(url) }),
  "a gateway": (url) => ({ status: 502, body: page(url) }),
  "a page": (url) => ({ status: 200, headers: { "content-type": "text/html" }, body: page(url) }),
  "an empty body": () => ({ status: 200, headers: { "content-type": "application/json" } }),
  "no JSON": (url) => ({
    headers: { "content-type": "application/json" },
    body: `{"jsonrpc":"2.0","result":${url}`,
  }),
  "an endless header": () => ({ headers: { "x-a": "a".repeat(100_000) } }),
  "an event that is none": (url) => ({
    headers: { "content-type": "text/event-stream" },
    body: `data: ${url}\n\n`,
  }),
  "an error of its own": (url, id) => ({
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id,
      error: { code: -32603, message: `no ${url} header-s3cret`, data: { url } },
    }),
  }),
  "an error without a number": (url, id) => ({
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id, error: { code: 0, message: `no ${url} header-s3cret` } }),
  }),
  "a reset": () => "reset",
};

/** A server that works until a call comes, or never. */
async function startServer(react: React, failsFrom: "tools/call" | "initialize"): Promise<number> {
  let hasFailed = failsFrom === "initialize";
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const text = await bodyOf(request);
    const {
      id = 0,
      method = "",
      params,
    } = (text === "" ? {} : JSON.parse(text)) as {
      id?: number;
      method?: string;
      params?: { protocolVersion?: string };
    };
    hasFailed ||= method === failsFrom;
    if (hasFailed) {
      const reaction = react(request.url ?? "", id);
      if (reaction === "reset") return void request.socket.resetAndDestroy();
      const { status = 200, headers = {}, body = "" } = reaction;
      return void response.writeHead(status, { ...headers }).end(body);
    }
    if (request.method !== "POST") return void response.writeHead(405).end();
    if (text === "" || !text.includes('"id"')) return void response.writeHead(202).end();
    const { protocolVersion } = params ?? {};
    const result =
      method === "initialize"
        ? { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } }
        : { tools: [{ name: "work", inputSchema: { type: "object" } }] };
    const reply = method === "server/discover" ? { error: { code: -32601, message: "no" } } : { result };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, ...reply }));
  };
  return listen(createServer((request, response) => void answer(request, response)));
}

/** Everything that callers are told: of two calls, the second of a server that has failed, and of the lists. */
async function toldBy(origin: string): Promise<string> {
  const url = `${origin}/path-s3cret/mcp?token=query-s3cret`;
  const headers = { Authorization: "Bearer header-s3cret" };
  const config = { mcpServers: { far: { url, headers } } };
  const gateway: Gateway = await createGateway(config, { firstListMs: 5000 });
  onTestFinished(() => gateway.close());
  await gateway.ready;
  const told: unknown[] = [];
  for (let turn = 0; turn < 2; turn++) {
    try {
      told.push(await callTool(gateway.provider, "far__work"));
    } catch (error) {
      const { message, data, code, delivery } = error as Error & {
        readonly data?: unknown;
        readonly code?: string;
        readonly delivery?: string;
      };
      told.push({ message, data, code, delivery });
    }
  }
  // The same reasons stand in the lists.
  const [status] = gateway.status();
  return JSON.stringify([told, status?.reason]);
}

function expectNone(told: string, port: number | undefined): void {
  for (const secret of secrets) expect(told).not.toContain(secret);
  expect(told).not.toContain("127.0.0.1");
  if (port !== undefined) expect(told).not.toContain(`:${port}`);
  expect(told).toMatch(/upstream\.|rpc\./);
}

test.each(Object.keys(reactions))("a call that meets %s", async (kind) => {
  const port = await startServer(reactions[kind]!, "tools/call");
  expectNone(await toldBy(`http://127.0.0.1:${port}`), port);
});

test.each(Object.keys(reactions))("a start that meets %s", async (kind) => {
  const port = await startServer(reactions[kind]!, "initialize");
  expectNone(await toldBy(`http://127.0.0.1:${port}`), port);
});

test("a port where nothing listens, a host that is not there, and no TLS", async () => {
  const closed = createTcpServer();
  const port = await listen(closed);
  closed.close();
  expectNone(await toldBy(`http://127.0.0.1:${port}`), port);
  expectNone(await toldBy("http://host-s3cret.invalid"), undefined);
  const plain = await startServer(reactions["a page"]!, "initialize");
  expectNone(await toldBy(`https://127.0.0.1:${plain}`), plain);
  const babble = await listen(
    createTcpServer((socket) => void socket.on("error", () => {}).end("hello\r\n\r\n")),
  );
  expectNone(await toldBy(`http://127.0.0.1:${babble}`), babble);
});
