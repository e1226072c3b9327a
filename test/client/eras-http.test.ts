import type { ServerResponse } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { legacyRevisions, modernRevisions } from "../../packages/core/src/mcp/revision.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakeHttp, type FakeReply, type HeardRequest, startSse, toReply } from "../support/fake-http.ts";
import { legacyScript, modernScript } from "../support/fake-script.ts";
import { freePort } from "../support/free-ports.ts";

type React = (request: HeardRequest, response: ServerResponse) => FakeReply;

async function listen(react: React): Promise<FakeHttp> {
  const server = await FakeHttp.listen(react);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

async function connectTo(server: FakeHttp, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(server.url, { eras: createEraCache(), ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return client;
}

async function meet(react: React, options: ConnectOptions = {}) {
  const server = await listen(react);
  const client = await connectTo(server, options);
  return { server, client, mode: (await client.agreement()).mode };
}

const modern: React = (request) => toReply(request, modernScript()(request.message!));
const legacy: React = (request) =>
  request.verb === "POST" ? toReply(request, legacyScript()(request.message!)) : { status: 405 };

/** A legacy server that answers a probe in its own way. */
function answering(probe: (request: HeardRequest) => FakeReply): React {
  return (request, response) =>
    request.message?.method === "server/discover" ? probe(request) : legacy(request, response);
}

const rpcError = (id: unknown, code: number, data?: unknown): object => ({
  jsonrpc: "2.0",
  id,
  error: { code, message: "no", ...(data === undefined ? {} : { data }) },
});

describe("an HTTP server is probed with server/discover", () => {
  test("and a valid result settles the modern era, with the headers of that era", async () => {
    const { server, client, mode } = await meet(modern);
    expect(mode).toEqual({ kind: "modern", revision: "2026-07-28" });
    await client.callTool("echo", { message: "hi" });
    expect(server.methods).toEqual(["server/discover", "tools/list", "tools/call"]);
    for (const { headers, message } of server.heard) {
      expect(headers).toMatchObject({
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": message?.method,
      });
      expect(headers).not.toHaveProperty("mcp-session-id");
    }
  });

  test.each<[string, (request: HeardRequest) => FakeReply]>([
    ["200 with -32601", ({ message }) => ({ body: rpcError(message?.id, -32601) })],
    ["200 with -32602", ({ message }) => ({ body: rpcError(message?.id, -32602) })],
    ["200 with -32020", ({ message }) => ({ body: rpcError(message?.id, -32020) })],
    ["400 with -32000 and no id", () => ({ status: 400, body: rpcError(null, -32000) })],
    [
      "400 with -32001, a draft's number",
      ({ message }) => ({ status: 400, body: rpcError(message?.id, -32001) }),
    ],
    ["404 with -32601", ({ message }) => ({ status: 404, body: rpcError(message?.id, -32601) })],
    ["400 with an empty body", () => ({ status: 400 })],
    ["404 with a page", () => ({ status: 404, headers: { "content-type": "text/html" }, body: "<html>" })],
    ["406", () => ({ status: 406 })],
    ["415", () => ({ status: 415, body: "what?" })],
    ["an unusable result", ({ message }) => ({ body: { jsonrpc: "2.0", id: message?.id, result: {} } })],
  ])("and %s means legacy", async (_, probe) => {
    const { server, client, mode } = await meet(answering(probe));
    expect(mode).toEqual({ kind: "legacy", revision: "2025-11-25" });
    await client.callTool("echo", { message: "hi" });
    expect(server.methods).toEqual([
      "server/discover",
      "initialize",
      "notifications/initialized",
      "tools/list",
      "tools/call",
    ]);
    const { headers } = server.calls("initialize")[0]!;
    for (const name of ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"])
      expect(headers).not.toHaveProperty(name);
    expect(server.calls("tools/call")[0]?.headers).toMatchObject({ "mcp-protocol-version": "2025-11-25" });
  });

  test.each([-32020, -32021])("and 400 with %i is an error of a modern server", async (code) => {
    const server = await listen(
      answering(({ message }) => ({ status: 400, body: rpcError(message?.id, code) })),
    );
    await expect(connectTo(server)).rejects.toMatchObject({ rpcCode: code });
    expect(server.methods).toEqual(["server/discover"]);
  });

  test.each<[string, FakeReply]>([
    ["401", { status: 401, body: { error: "invalid_token" } }],
    ["401 that speaks JSON-RPC", { status: 401, body: rpcError(null, -32000) }],
    ["403", { status: 403 }],
    ["500", { status: 500, body: "oops" }],
    ["500 that speaks JSON-RPC", { status: 500, body: rpcError(null, -32603) }],
    ["503", { status: 503 }],
  ])("and %s decides nothing", async (_, reply) => {
    const eras = createEraCache();
    let isReady = false;
    const server = await listen((request, response) => (isReady ? modern(request, response) : reply));
    const failure = (await connectTo(server, { eras }).catch((error: unknown) => error)) as Error;
    expect(String(failure)).toMatch(/401|403|500|503|no/);
    expect(server.methods).toEqual(["server/discover"]);
    isReady = true;
    expect((await (await connectTo(server, { eras })).agreement()).mode.kind).toBe("modern");
  });

  test("and an error of authorization says what to do", async () => {
    const server = await listen(() => ({ status: 401 }));
    await expect(connectTo(server)).rejects.toMatchObject({ name: "HttpError", status: 401 });
    await expect(connectTo(server)).rejects.toThrow(/authorization/);
  });

  test("and silence decides nothing", async () => {
    const clock = createVirtualClock();
    const server = await listen(() => undefined);
    const connecting = connectTo(server, { clock, connectTimeoutMs: 30_000 });
    const failed = connecting.catch((error: unknown) => error);
    await expect.poll(() => server.methods).toEqual(["server/discover"]);
    await clock.advance(30_000);
    expect(await failed).toMatchObject({ code: "client.connect" });
    expect(server.methods).toEqual(["server/discover"]);
  });

  test("and a broken network decides nothing", async () => {
    const server = await listen((_, response) => void response.destroy());
    await expect(connectTo(server)).rejects.toMatchObject({
      code: "channel.closed",
      delivery: "outcome_unknown",
    });
    expect(server.methods).toEqual(["server/discover"]);
  });

  test("and an address where nothing listens is an error that says so", async () => {
    await expect(connect(`http://127.0.0.1:${await freePort()}/mcp`)).rejects.toMatchObject({
      delivery: "not_sent",
      message: expect.stringContaining("nothing listens there") as unknown,
    });
  });
});

describe("-32022 over HTTP", () => {
  test("with our revision in the list is retried once", async () => {
    let probes = 0;
    const { server, mode } = await meet((request, response) =>
      request.message?.method === "server/discover" && probes++ === 0
        ? { status: 400, body: rpcError(request.message.id, -32022, { supported: ["2026-07-28"] }) }
        : modern(request, response),
    );
    expect(mode.kind).toBe("modern");
    expect(server.methods).toEqual(["server/discover", "server/discover"]);
  });

  test("with a disjoint list fails, and initialize is never sent", async () => {
    const server = await listen(
      answering(({ message }) => ({
        status: 400,
        body: rpcError(message?.id, -32022, { supported: ["2031-01-01"] }),
      })),
    );
    await expect(connectTo(server)).rejects.toMatchObject({ rpcCode: -32022 });
    expect(server.methods).toEqual(["server/discover"]);
  });
});

/** A server of 2024-11-05: a stream, and a URL for everything else. */
function httpSse(refusal: FakeReply, endpoint = "/messages?sessionId=abc"): React {
  let send: (message: object) => void = () => {};
  return (request, response) => {
    if (request.verb === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: endpoint\ndata: ${endpoint}\n\n`);
      send = (message) => void response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
      return undefined;
    }
    if (request.path !== "/messages?sessionId=abc") return refusal;
    const reaction = legacyScript({ revision: "2024-11-05" })(request.message!);
    if (reaction !== undefined) send({ jsonrpc: "2.0", id: request.message?.id, ...reaction });
    return { status: 202, body: "Accepted" };
  };
}

describe("a server that takes no POST where it streams", () => {
  test.each<[number, FakeReply]>([
    [400, { status: 400, body: rpcError(null, -32000) }],
    [404, { status: 404 }],
    [405, { status: 405 }],
  ])("(%i) is spoken to by HTTP+SSE", async (_, refusal) => {
    const { server, client, mode } = await meet(httpSse(refusal), { headers: { authorization: "Bearer t" } });
    expect(mode).toEqual({ kind: "legacy", revision: "2024-11-05" });
    expect((await client.callTool("echo", { message: "hi" })).content).toHaveLength(1);
    expect(server.heard.map(({ headers }) => headers.authorization)).not.toContain(undefined);
  });

  test("may be pinned to its revision", async () => {
    const { mode } = await meet(httpSse({ status: 404 }), { revision: "2024-11-05" });
    expect(mode.revision).toBe("2024-11-05");
  });

  test.each([401, 403, 409, 410, 500])("but %i does not lead there", async (status) => {
    const server = await listen(httpSse({ status }));
    await expect(connectTo(server)).rejects.toMatchObject({ name: "HttpError", status });
    expect(server.heard.filter(({ verb }) => verb === "GET")).toEqual([]);
  });

  test("and names an endpoint elsewhere is not followed", async () => {
    const server = await listen(httpSse({ status: 404 }, "http://127.0.0.2:9/steal"));
    await expect(connectTo(server)).rejects.toMatchObject({ status: 404 });
  });

  test("and streams no endpoint first is not one", async () => {
    const server = await listen((request, response) => {
      if (request.verb !== "GET") return { status: 404 };
      startSse(response)({ data: { jsonrpc: "2.0", method: "notifications/message" } });
      return undefined;
    });
    await expect(connectTo(server)).rejects.toMatchObject({ status: 404 });
    await expect.poll(() => server.open).toBe(0);
  });
});

describe("pinning over HTTP", () => {
  test.each([...legacyRevisions, ...modernRevisions])("%s needs no other request first", async (revision) => {
    const isModern = revision === "2026-07-28";
    const { server, client, mode } = await meet(isModern ? modern : legacy, { revision });
    expect(mode.revision).toBe(revision);
    await client.callTool("echo", { message: "hi" });
    expect(server.methods[0]).toBe(isModern ? "server/discover" : "initialize");
    expect(server.calls("tools/call")[0]?.headers["mcp-protocol-version"]).toBe(revision);
  });
});

describe("a verdict is remembered", () => {
  test("so that a legacy server is not probed by every client, until it expires", async () => {
    let now = 0;
    const eras = createEraCache({ legacyTtlMs: 1000, now: () => now });
    const server = await listen(legacy);
    await connectTo(server, { eras });
    await connectTo(server, { eras });
    expect(server.calls("server/discover")).toHaveLength(1);
    now = 1000;
    await connectTo(server, { eras });
    expect(server.calls("server/discover")).toHaveLength(2);
  });

  test("for each credential on its own", async () => {
    const eras = createEraCache();
    const server = await listen(legacy);
    await connectTo(server, { eras, headers: { authorization: "Bearer a" } });
    await connectTo(server, { eras, headers: { authorization: "Bearer b" } });
    expect(server.calls("server/discover")).toHaveLength(2);
  });

  test("but a legacy one does not survive the server's upgrade to modern alone", async () => {
    const eras = createEraCache();
    let react = legacy;
    const server = await listen((request, response) => react(request, response));
    await connectTo(server, { eras });
    react = (request, response) =>
      request.message?.method === "initialize"
        ? { status: 400, body: rpcError(request.message.id, -32602) }
        : modern(request, response);
    expect((await (await connectTo(server, { eras })).agreement()).mode.kind).toBe("modern");
  });

  test("and a modern one is dropped when it turns out wrong", async () => {
    const eras = createEraCache();
    let react = modern;
    const server = await listen((request, response) => react(request, response));
    await connectTo(server, { eras });
    react = legacy;
    expect((await (await connectTo(server, { eras })).agreement()).mode.kind).toBe("legacy");
  });
});
