import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { fixture, startUpstream } from "../bridge/support/upstream.ts";
import { startReplicas, type TestReplica } from "./support/replicas.ts";
import { statefulServer } from "./support/servers.ts";

const counting = { command: process.execPath, args: [fixture("bridge-counting.mjs")] };
const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};

/** Begins a legacy session at a replica and gives its id. */
async function beginSession({ url }: TestReplica): Promise<string> {
  const clientInfo = { name: "test", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: { elicitation: { form: {} } }, clientInfo };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params });
  const answer = await fetch(url, { method: "POST", headers, body });
  await answer.text();
  const session = answer.headers.get("mcp-session-id") ?? "";
  await send({ url }, session, { method: "notifications/initialized" });
  return session;
}

function send(
  { url }: Pick<TestReplica, "url">,
  session: string,
  message: object,
  more: { readonly signal?: AbortSignal } = {},
): Promise<Response> {
  const body = JSON.stringify({ jsonrpc: "2.0", ...message });
  return fetch(url, { method: "POST", headers: { ...headers, "mcp-session-id": session }, body, ...more });
}

interface WireMessage {
  readonly id: unknown;
  readonly method?: string;
  readonly result?: unknown;
}

/** Reads the events of a stream until one has an answer or a question. */
async function* readEvents(answer: Response): AsyncGenerator<WireMessage, undefined> {
  let text = "";
  for await (const piece of (answer.body as ReadableStream<Uint8Array>).pipeThrough(
    new TextDecoderStream(),
  )) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const data = /^data: (.+)$/m.exec(text.slice(0, end))?.[1];
      text = text.slice(end + 2);
      if (data !== undefined) yield JSON.parse(data) as WireMessage;
    }
  }
}

test("a question of a legacy call is answered by a replica that did not ask it", async () => {
  await using upstream = await startUpstream("legacy", "http");
  await using stage = await startReplicas(3, { mcpServers: { asking: upstream.entry } });
  const [one, two, three] = stage.replicas as [TestReplica, TestReplica, TestReplica];
  const session = await beginSession(one);
  const params = { name: "asking__ask", arguments: { nonce: "n", rounds: [["form"]] } };
  const call = await send(two, session, { id: 7, method: "tools/call", params });
  const events = readEvents(call);
  const question = (await events.next()).value;
  expect(question?.method).toBe("elicitation/create");
  const result = { action: "accept", content: { nonce: "n" } };
  const taken = await send(three, session, { id: question?.id, result });
  expect(taken.status).toBe(202);
  const last = (await events.next()).value;
  expect(last).toMatchObject({ id: 7, result: { content: [{ type: "text" }] } });
  expect(upstream.count("answered")).toBe(1);
});

test("a stream goes on when the connection between two replicas breaks", async () => {
  await using upstream = await startUpstream("legacy", "http");
  await using stage = await startReplicas(2, { mcpServers: { asking: upstream.entry } });
  const [one, two] = stage.replicas as [TestReplica, TestReplica];
  const session = await beginSession(one);
  const params = { name: "asking__ask", arguments: { nonce: "n", rounds: [["form"]] } };
  const events = readEvents(await send(two, session, { id: 7, method: "tools/call", params }));
  const question = (await events.next()).value;
  await two.cluster.trunk.cutGone(async () => true);
  const result = { action: "accept", content: { nonce: "n" } };
  expect((await send(two, session, { id: question?.id, result })).status).toBe(202);
  const rest: WireMessage[] = [];
  for await (const message of events) rest.push(message);
  expect(rest).toMatchObject([{ id: 7, result: { content: [{ type: "text" }] } }]);
});

test("a stream that its client resumed at another replica is not resumed for the older connection", async () => {
  await using upstream = await startUpstream("legacy", "http");
  await using stage = await startReplicas(3, { mcpServers: { asking: upstream.entry } });
  const [one, two, three] = stage.replicas as [TestReplica, TestReplica, TestReplica];
  const session = await beginSession(one);
  const params = { name: "asking__ask", arguments: { nonce: "n", rounds: [["form"]] } };
  const older = await send(two, session, { id: 7, method: "tools/call", params });
  const reader = (older.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/^data: .*elicitation/m.test(text)) text += (await reader.read()).value ?? "";
  const [, eventId = ""] = /^id: (.+)$/m.exec(text) ?? [];
  const headersOf = { accept: "text/event-stream", "mcp-session-id": session, "last-event-id": eventId };
  const newer = await fetch(three.url, { headers: headersOf });
  expect(newer.status).toBe(200);
  // It would be kept open for as long as the two replicas take the stream from each other.
  await expect(reader.read()).rejects.toThrow("terminated");
  const question = JSON.parse(/^data: (.*elicitation.*)$/m.exec(text)?.[1] ?? "null") as WireMessage;
  const result = { action: "accept", content: { nonce: "n" } };
  expect((await send(one, session, { id: question.id, result })).status).toBe(202);
  const rest: WireMessage[] = [];
  for await (const message of readEvents(newer)) if (message.method === undefined) rest.push(message);
  expect(rest).toMatchObject([{ id: 7, result: { content: [{ type: "text" }] } }]);
});

test("a session has one stream of announcements, and one end, at whichever replica", async () => {
  await using stage = await startReplicas(3, { mcpServers: { counting } });
  const [one, two, three] = stage.replicas as [TestReplica, TestReplica, TestReplica];
  const session = await beginSession(one);
  const listening = { headers: { accept: "text/event-stream", "mcp-session-id": session } };
  const stream = await fetch(two.url, listening);
  expect(stream.status).toBe(200);
  const second = await fetch(three.url, listening);
  expect(second.status).toBe(409);
  const ended = await fetch(three.url, { ...listening, method: "DELETE" });
  expect(ended.status).toBe(200);
  for (const replica of stage.replicas)
    expect((await send(replica, session, { id: 2, method: "ping" })).status).toBe(404);
  await stream.body?.cancel();
});

test("a client that left its stream may open another at any replica at once", async () => {
  await using stage = await startReplicas(3, { mcpServers: { counting } });
  const [one, two, three] = stage.replicas as [TestReplica, TestReplica, TestReplica];
  const session = await beginSession(one);
  const headersOf = { accept: "text/event-stream", "mcp-session-id": session };
  const statuses: number[] = [];
  for (const replica of [two, three, two, three, two, three]) {
    const leaving = new AbortController();
    const stream = await fetch(replica.url, { headers: headersOf, signal: leaving.signal });
    statuses.push(stream.status);
    leaving.abort();
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
});

test("a session whose home is gone is adopted by one replica, unless it was deleted", async () => {
  await using stage = await startReplicas(3, { mcpServers: { counting } });
  const [one, two, three] = stage.replicas as [TestReplica, TestReplica, TestReplica];
  const session = await beginSession(one);
  const deleted = await beginSession(one);
  await fetch(one.url, { method: "DELETE", headers: { "mcp-session-id": deleted } });
  await one[Symbol.asyncDispose]();
  const answers = await Promise.all(
    [two, three, two, three].map((replica, id) => send(replica, session, { id, method: "ping" })),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const live = [two, three].map(({ listener }) => listener.inspect().sessions.length);
  expect(live.toSorted((a, b) => a - b)).toEqual([0, 1]);
  expect((await send(two, deleted, { id: 9, method: "ping" })).status).toBe(404);
});

test("another replica runs a server whose owner is gone", async () => {
  await using stage = await startReplicas(2, { mcpServers: { counting } });
  const [one, two] = stage.replicas as [TestReplica, TestReplica];
  const handlers = { elicit: () => ({ action: "accept" as const, content: {} }) };
  const call = async (): Promise<number> => {
    const client = await connect(two.url, { handlers, eras: createEraCache() });
    const { content } = await client.callTool("counting__visit", { kind: "form", who: "ada" });
    await client.close();
    return (JSON.parse((content[0] as { text: string }).text) as { pid: number }).pid;
  };
  const before = await call();
  expect(await call()).toBe(before);
  await one[Symbol.asyncDispose]();
  await expect.poll(() => call().catch(() => before)).not.toBe(before);
});

test("a server of another replica is reached again however often the connection to it breaks", async () => {
  await using stage = await startReplicas(2, { mcpServers: { store: statefulServer } });
  const [one, two] = stage.replicas as [TestReplica, TestReplica];
  const session = await beginSession(two);
  const params = { name: "store__count", arguments: {} };
  const call = async (): Promise<string> =>
    (await send(two, session, { id: 1, method: "tools/call", params })).text();
  const refusals: string[] = [];
  for (let breaks = 0; breaks < 7; breaks++) {
    await two.cluster.trunk.cutGone(async () => true);
    const isServed = async (): Promise<boolean> => {
      const answer = await call();
      if (!answer.includes('"result"')) refusals.push(answer);
      return answer.includes('"result"');
    };
    await expect.poll(isServed).toBe(true);
  }
  expect(await one.cluster.store.read("own:store")).toBe(one.cluster.membership.id);
  expect(refusals.filter((text) => text.includes("too often"))).toEqual([]);
});

test("a replica that was cut off serves its sessions only if no other adopted them", async () => {
  await using stage = await startReplicas(3, { mcpServers: { counting } });
  const [one, two, three] = stage.replicas as [TestReplica, TestReplica, TestReplica];
  const [kept, adopted] = [await beginSession(one), await beginSession(one)];
  // The registration runs out while the process is stopped: `two` adopts a session, then the home is back.
  const { store } = one.cluster;
  const facts = (await store.register("000000000000", "{}", 1)).get(one.cluster.membership.id) ?? "";
  await store.unregister(one.cluster.membership.id);
  expect(await two.cluster.membership.findAgain(one.cluster.membership.id)).toBeUndefined();
  expect((await send(two, adopted, { id: 1, method: "ping" })).status).toBe(200);
  await store.register(one.cluster.membership.id, facts, 10_000);
  one.cluster.homes.doubt();
  for (const replica of [one, two, three]) {
    expect((await send(replica, adopted, { id: 2, method: "ping" })).status).toBe(200);
    expect((await send(replica, kept, { id: 3, method: "ping" })).status).toBe(200);
  }
  expect(await store.read(`home:${adopted.slice(-32)}`)).toBe(two.cluster.membership.id);
  expect(await store.read(`home:${kept.slice(-32)}`)).toBe(one.cluster.membership.id);
});

test("a call whose session another replica adopted meanwhile ends, and its outcome is unknown", async () => {
  await using upstream = await startUpstream("legacy", "http");
  await using stage = await startReplicas(2, { mcpServers: { asking: upstream.entry } });
  const [one, two] = stage.replicas as [TestReplica, TestReplica];
  const session = await beginSession(one);
  const params = { name: "asking__ask", arguments: { nonce: "n", rounds: [["form"]] } };
  const events = readEvents(await send(one, session, { id: 7, method: "tools/call", params }));
  const question = (await events.next()).value;
  // The home is stopped for so long that the replica with the answer adopts the session, and then goes on.
  const { store, membership, homes } = one.cluster;
  const facts = (await store.register("000000000000", "{}", 1)).get(membership.id) ?? "";
  await store.unregister(membership.id);
  expect(await two.cluster.membership.findAgain(membership.id)).toBeUndefined();
  const result = { action: "accept", content: { nonce: "n" } };
  expect((await send(two, session, { id: question?.id, result })).status).toBe(202);
  await store.register(membership.id, facts, 10_000);
  homes.doubt();
  const rest: WireMessage[] = [];
  for await (const message of events) rest.push(message);
  expect(rest.map(({ method }) => method)).toEqual(["notifications/cancelled", undefined]);
  expect(rest[1]).toMatchObject({ id: 7, error: { data: { delivery: "outcome_unknown" } } });
  expect((await send(one, session, { id: 8, method: "ping" })).status).toBe(200);
});

test("an id that was made up takes no lease", async () => {
  await using stage = await startReplicas(1, { mcpServers: { counting } });
  const [one] = stage.replicas as [TestReplica];
  const forged = `0123456789ab.v1.${"x".repeat(80)}`;
  expect((await send(one, forged, { id: 1, method: "ping" })).status).toBe(404);
  const origin = new URL(one.url).origin;
  expect((await fetch(`${origin}/health`, { headers: { "mcp-session-id": forged } })).status).toBe(200);
  expect(await one.cluster.store.read(`home:${forged.slice(-32)}`)).toBeUndefined();
});
