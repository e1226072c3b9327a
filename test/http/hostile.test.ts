import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { ListenHttpOptions } from "../../packages/server/src/http/http-options.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const info = { name: "test", version: "1.0.0" };
const meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

interface Running {
  readonly listener: HttpListener;
  readonly started: number;
  readonly aborted: number;
  release(): void;
}

/** A server with a tool that waits, one that answers much, and one that shows the headers it can read. */
async function start(options: ListenHttpOptions = {}, maxListens?: number): Promise<Running> {
  const state = { started: 0, aborted: 0, release: () => {} };
  const released = new Promise<void>((resolve) => (state.release = resolve));
  const registry = createRegistry();
  registry.register("wait", {}, async (_, { signal }) => {
    state.started++;
    signal.addEventListener("abort", () => state.aborted++);
    await released;
    return "done";
  });
  registry.register("much", { input: { type: "object" } }, async () => {
    await released;
    return "x".repeat(20_000_000);
  });
  registry.register(
    "peek",
    {},
    (_, { headers }) => `${headers?.("authorization")} ${headers?.("mcp-method")}`,
  );
  const server = createServer(registry, info, maxListens === undefined ? {} : { maxListens });
  const listener = await listenHttp(server, { port: 0, onWarning: () => {}, ...options });
  cleanups.push(() => {
    state.release();
    return listener.close();
  });
  return {
    listener,
    get started() {
      return state.started;
    },
    get aborted() {
      return state.aborted;
    },
    release: state.release,
  };
}

function dial({ listener }: Running): Socket {
  const socket = connect(listener.port, "127.0.0.1");
  socket.on("error", () => {});
  cleanups.push(() => socket.destroy());
  return socket;
}

function post(
  { listener }: Running,
  id: number,
  method: string,
  params: object,
  name?: string,
  extra = "",
): string {
  const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } });
  const named = name === undefined ? "" : `Mcp-Name: ${name}\r\n`;
  return (
    `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${listener.port}\r\nContent-Type: application/json\r\n` +
    `Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: ${method}\r\n` +
    `${named}${extra}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

const call = (at: Running, id: number, name: string, extra?: string): string =>
  post(at, id, "tools/call", { name }, name, extra);

describe("requests sent ahead on one socket", () => {
  test("are started one after the other, so a hang-up leaves none running", async () => {
    const at = await start();
    const socket = dial(at);
    socket.write([1, 2, 3, 4, 5].map((id) => call(at, id, "wait")).join(""));
    await expect.poll(() => at.started).toBe(1);
    socket.destroy();
    await expect.poll(() => at.aborted).toBe(1);
    expect(at.started).toBe(1);
  });

  test("are all answered, in order", async () => {
    const at = await start();
    const socket = dial(at);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.write([1, 2, 3].map((id) => call(at, id, "peek")).join(""));
    await expect.poll(() => text.match(/"id":\d/g)).toEqual(['"id":1', '"id":2', '"id":3']);
  });

  test("take no listen slot for good", async () => {
    const at = await start({}, 5);
    const socket = dial(at);
    const listen = { notifications: { toolsListChanged: true } };
    socket.write(
      Array.from({ length: 20 }, (_, id) => post(at, id, "subscriptions/listen", listen)).join(""),
    );
    await new Promise((resolve) => socket.once("data", resolve));
    socket.destroy();
    const other = dial(at);
    let text = "";
    other.on("data", (chunk: Buffer) => (text += chunk.toString()));
    other.write(post(at, 1, "subscriptions/listen", listen));
    await expect.poll(() => text).toContain("acknowledged");
  });
});

test("a stop waits until what was answered has reached its reader", async () => {
  const at = await start();
  const socket = dial(at);
  let length = 0;
  socket.on("data", (chunk: Buffer) => (length += chunk.length));
  socket.write(call(at, 1, "much"));
  await new Promise((resolve) => socket.once("connect", resolve));
  setImmediate(at.release);
  await new Promise((resolve) => socket.once("data", resolve));
  await at.listener.close();
  await expect.poll(() => length).toBeGreaterThan(20_000_000);
});

test("a reader that takes nothing of a JSON answer is cut", async () => {
  const cuts: string[] = [];
  const at = await start({ stallMs: 100, onWarning: (text) => cuts.push(text) });
  const socket = dial(at);
  socket.pause();
  socket.write(call(at, 1, "much"));
  at.release();
  await expect.poll(() => cuts).toEqual(["A client was cut off: the reader took nothing for 100 ms"]);
});

test("authenticate is waited for whatever kind of promise it gives, and lets in a name only", async () => {
  const nobody = Object.fromEntries([["then", (give: (value: undefined) => void) => give(undefined)]]);
  for (const answer of [nobody, {}, 5, true]) {
    const at = await start({ authenticate: () => answer as unknown as string });
    const socket = dial(at);
    socket.write(call(at, 1, "peek"));
    const [chunk] = (await new Promise((resolve) =>
      socket.once("data", (data: Buffer) => resolve([data])),
    )) as [Buffer];
    expect(chunk.toString()).toContain("401 Unauthorized");
  }
});

test("a tool can read the headers that mirror its call, and no others", async () => {
  const at = await start();
  const socket = dial(at);
  socket.write(call(at, 1, "peek", "Authorization: Bearer s3cret\r\n"));
  const chunk = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
  expect(chunk.toString()).toContain("undefined tools/call");
});

test("a client that waits for permission to send its body gets none from a server that would refuse it", async () => {
  const at = await start();
  for (const [request, answer] of [
    [call(at, 1, "peek", "Expect: 100-continue\r\n"), "100 Continue"],
    [
      call(at, 1, "peek", "Expect: 100-continue\r\n").replace(/Host: .*/, "Host: evil.example"),
      "403 Forbidden",
    ],
  ] as const) {
    const socket = dial(at);
    socket.write(request);
    const chunk = await new Promise<Buffer>((resolve) => socket.once("data", resolve));
    expect(chunk.toString().split("\r\n", 1)[0]).toContain(answer);
  }
});
