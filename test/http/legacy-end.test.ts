import { expect, test } from "vitest";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const info = { name: "test", version: "1.0.0" };
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };

async function initialize(url: string, clientInfo: object = { name: "me", version: "1" }): Promise<Response> {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params });
  return fetch(url, { method: "POST", headers, body });
}

function startWaiting(): { registry: ReturnType<typeof createRegistry>; started: Promise<void> } {
  const registry = createRegistry();
  const started = new Promise<void>((resolve) => {
    registry.register("wait", {}, () => {
      resolve();
      return new Promise<string>(() => {}); // It does not care whether anybody still wants it.
    });
  });
  return { registry, started };
}

function post(url: string, session: string, message: object): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  return fetch(url, { method: "POST", headers: { ...headers, "mcp-session-id": session }, body });
}

const wait = { id: 1, method: "tools/call", params: { name: "wait" } };

test("a call that is cancelled ends at once, though its tool does not, and its id is free", async () => {
  const { registry, started } = startWaiting();
  await using listener = await listenHttp(createServer(registry, info), { port: 0, graceMs: 50 });
  const session = (await initialize(listener.url)).headers.get("mcp-session-id") ?? "";
  const called = post(listener.url, session, wait);
  await started;
  await post(listener.url, session, { method: "notifications/cancelled", params: { requestId: 1 } });
  expect((await called).status).toBe(202);
  await expect((await post(listener.url, session, { id: 1, method: "ping" })).json()).resolves.toMatchObject({
    result: {},
  });
});

test("a call whose session is deleted is answered, and says that its outcome is unknown", async () => {
  const { registry, started } = startWaiting();
  await using listener = await listenHttp(createServer(registry, info), { port: 0, graceMs: 50 });
  const session = (await initialize(listener.url)).headers.get("mcp-session-id") ?? "";
  const called = post(listener.url, session, wait);
  await started;
  await fetch(listener.url, { method: "DELETE", headers: { "mcp-session-id": session } });
  const answer = (await (await called).json()) as { id: number; error: { message: string } };
  expect(answer).toMatchObject({ id: 1, error: { code: -32603 } });
  expect(answer.error.message).toContain("the session was deleted");
});

test("a call whose session is deleted is answered on its stream, if it has one", async () => {
  const registry = createRegistry();
  registry.register("wait", {}, async (_, { log }) => {
    await log("info", "begun");
    return new Promise<string>(() => {});
  });
  await using listener = await listenHttp(createServer(registry, info), { port: 0, graceMs: 50 });
  const session = (await initialize(listener.url)).headers.get("mcp-session-id") ?? "";
  const called = await post(listener.url, session, wait);
  await fetch(listener.url, { method: "DELETE", headers: { "mcp-session-id": session } });
  const answer = (await called.text()).split("\n").findLast((line) => line.startsWith("data: {"));
  expect(JSON.parse(answer?.slice("data: ".length) ?? "")).toMatchObject({
    id: 1,
    error: { data: { delivery: "outcome_unknown" } },
  });
});

test("a revision no session speaks is refused on every route of a session", async () => {
  await using listener = await listenHttp(createServer(createRegistry(), info), { port: 0 });
  const session = (await initialize(listener.url)).headers.get("mcp-session-id") ?? "";
  const odd = { ...headers, "mcp-session-id": session, "mcp-protocol-version": "1999-01-01" };
  const statuses = await Promise.all(
    [
      { method: "GET" },
      { method: "DELETE" },
      { method: "POST", body: '{"jsonrpc":"2.0","id":1,"result":{}}' },
      { method: "POST", body: '[{"jsonrpc":"2.0","id":1,"method":"ping"}]' },
    ].map(async (init) => (await fetch(listener.url, { ...init, headers: odd })).status),
  );
  expect(statuses).toEqual([400, 400, 400, 400]);
});

test("a client with large icons gets a session", async () => {
  await using listener = await listenHttp(createServer(createRegistry(), info), { port: 0 });
  const icons = [{ src: `data:image/png;base64,${"A".repeat(8000)}` }];
  const answer = await initialize(listener.url, { name: "me", version: "1", icons });
  expect(answer.headers.get("mcp-session-id")?.length).toBeLessThan(1000);
});

test("a stream that was quiet for long may be lost for a moment without the session being forgotten", async () => {
  const clock = createVirtualClock(1_000_000);
  const registry = createRegistry();
  const seal = createSeal({ now: clock.now });
  await using listener = await listenHttp(createServer(registry, info), { port: 0, clock, seal });
  const session = (await initialize(listener.url)).headers.get("mcp-session-id") ?? "";
  const other = (await initialize(listener.url)).headers.get("mcp-session-id") ?? "";
  const leaving = new AbortController();
  const stream = { accept: "text/event-stream", "mcp-session-id": session };
  const opened = await fetch(listener.url, { headers: stream, signal: leaving.signal });
  const first = await opened.body?.getReader().read();
  const lastId = /id: (\S+)/.exec(new TextDecoder().decode(first?.value as Uint8Array))?.[1] ?? "";
  await clock.advance(6 * 60_000);
  leaving.abort();
  // A request of somebody else, which is when sessions nobody uses are forgotten.
  await post(listener.url, other, { id: 1, method: "ping" });
  registry.register("new", {}, () => "new");
  const resumed = await fetch(listener.url, { headers: { ...stream, "last-event-id": lastId } });
  expect(resumed.status).toBe(200);
  const missed = await resumed.body?.getReader().read();
  expect(new TextDecoder().decode(missed?.value as Uint8Array)).toContain("notifications/tools/list_changed");
});
