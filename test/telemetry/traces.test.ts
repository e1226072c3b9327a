// Spans as a collector gets them, held to OpenTelemetry's conventions for MCP.
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { startAdmin, type TestAdmin } from "../admin/support/admin.ts";
import { statefulServer } from "../gateway/support/servers.ts";
import { json, mirrored, modernCall, toPairs } from "../support/http-wire.ts";
import { type OtlpSink, startOtlpSink, type SunkSpan } from "./support/otlp-sink.ts";

const asking = fileURLToPath(new URL("../fixtures/bridge-upstream.mjs", import.meta.url));
const traceId = "0af7651916cd43dd8448eb211c80319c";
const parentId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${parentId}-01`;
const local = { demo: createDemoRegistry() };
const server = 2;
const client = 3;

const tracing = (sink: OtlpSink, more: object = {}): object => ({ endpoint: sink.endpoint, ...more });

interface Called {
  readonly result: {
    readonly inputRequests: { readonly [key: string]: object };
    readonly requestState: string;
  };
}

async function callTool(
  admin: TestAdmin,
  name: string,
  args: object,
  more: object = {},
  headers: object = {},
  respell: (body: string) => string = (body) => body,
): Promise<Called> {
  const message = modernCall(name, args, { ...more });
  const response = await fetch(admin.url, {
    method: "POST",
    headers: toPairs({ ...mirrored(message), "content-type": json, accept: json, ...headers }) as [
      string,
      string,
    ][],
    body: respell(JSON.stringify(message)),
  });
  return (await response.json()) as Called;
}

/** The spans of all gateways, once these were ended. */
async function spansOf(sink: OtlpSink, ...admins: readonly TestAdmin[]): Promise<readonly SunkSpan[]> {
  for (const admin of admins) await admin[Symbol.asyncDispose]();
  return sink.spans;
}

const of = (spans: readonly SunkSpan[], kind: number, service?: string): readonly SunkSpan[] =>
  spans.filter((span) => span.kind === kind && (service === undefined || span.service === service));

describe("spans", () => {
  test("say what the conventions want, and nothing of arguments and results", async () => {
    await using sink = await startOtlpSink();
    const admin = await startAdmin(
      { mcpServers: { store: statefulServer() }, junctor: { traces: tracing(sink, { service: "edge" }) } },
      { local },
    );
    await callTool(admin, "store__echo", { text: "a secret word" });
    await callTool(admin, "nothing", {});
    await callTool(admin, "add", { a: 1, b: "no number" });
    const spans = await spansOf(sink, admin);
    const [echo, unknown, wrong] = of(spans, server);
    expect(echo).toMatchObject({
      name: "tools/call store__echo",
      service: "edge",
      attributes: {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "store__echo",
        "gen_ai.operation.name": "execute_tool",
        "mcp.protocol.version": "2026-07-28",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "jsonrpc.request.id": "1",
        "junctor.server": "store",
        "junctor.outcome": "ok",
      },
      status: {},
    });
    expect(echo?.attributes).not.toHaveProperty(["error.type"]);
    expect(unknown).toMatchObject({
      attributes: { "error.type": "-32602", "rpc.response.status_code": "-32602" },
      status: { code: 2 },
    });
    expect(wrong).toMatchObject({ attributes: { "error.type": "tool_error" }, status: { code: 2 } });
    expect(of(spans, client)).toMatchObject([
      {
        name: "tools/call echo",
        traceId: echo?.traceId,
        parentSpanId: echo?.spanId,
        attributes: { "gen_ai.tool.name": "echo", "network.transport": "pipe", "junctor.server": "store" },
      },
    ]);
    expect(BigInt(echo?.endTimeUnixNano ?? 0)).toBeGreaterThan(BigInt(echo?.startTimeUnixNano ?? 0));
    expect(sink.bodies.join()).not.toContain("secret word");
    expect(sink.bodies.join()).not.toContain("no number");
  });

  test("have the parent of _meta, the HTTP context as a link, and go on through a second gateway", async () => {
    await using sink = await startOtlpSink();
    const inner = await startAdmin({
      mcpServers: { store: statefulServer() },
      junctor: { traces: tracing(sink, { service: "inner" }) },
    });
    const outer = await startAdmin({
      mcpServers: { inner: { url: inner.url } },
      junctor: { traces: tracing(sink, { service: "outer" }), servers: { inner: { prefix: false } } },
    });
    const link = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
    const meta = { traceparent, tracestate: "a=b", baggage: "user=7" };
    await callTool(outer, "store__echo", { text: "x" }, { _meta: meta }, { traceparent: link });
    const spans = await spansOf(sink, outer, inner);
    const calls = spans.filter(({ name }) => name.startsWith("tools/call"));
    expect(new Set(calls.map((span) => span.traceId))).toEqual(new Set([traceId]));
    const [first] = of(calls, server, "outer");
    const [second] = of(calls, client, "outer");
    const [third] = of(calls, server, "inner");
    const [fourth] = of(calls, client, "inner");
    expect(first?.parentSpanId).toBe(parentId);
    expect(first?.links).toEqual([{ traceId: "1".repeat(32), spanId: "2".repeat(16) }]);
    expect([second?.parentSpanId, third?.parentSpanId, fourth?.parentSpanId]).toEqual([
      first?.spanId,
      second?.spanId,
      third?.spanId,
    ]);
    expect(second?.attributes).toMatchObject({
      "server.address": "127.0.0.1",
      "server.port": new URL(inner.url).port,
      "network.protocol.name": "http",
    });
  });

  test("of a parked call are one trace over all its rounds", async () => {
    await using sink = await startOtlpSink();
    const entry = { command: process.execPath, args: [asking, "--serves", "legacy"] };
    const admin = await startAdmin({ mcpServers: { asking: entry }, junctor: { traces: tracing(sink) } });
    const meta = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } };
    const args = { nonce: "n", rounds: [["form"]] };
    const { result } = await callTool(admin, "asking__ask", args, { _meta: meta });
    const [key = ""] = Object.keys(result.inputRequests);
    const inputResponses = { [key]: { action: "accept", content: { nonce: "n" } } };
    const { requestState } = result;
    const later = { ...meta, traceparent };
    await callTool(admin, "asking__ask", args, { _meta: later, inputResponses, requestState });
    const spans = await spansOf(sink, admin);
    const [first, second] = of(spans, server);
    expect(first?.attributes["junctor.outcome"]).toBe("input_required");
    expect(second?.attributes["junctor.outcome"]).toBe("ok");
    expect(second).toMatchObject({ traceId: first?.traceId, parentSpanId: first?.spanId });
    expect(second?.links).toEqual([{ traceId, spanId: parentId }]);
    // One request to the server, which lasted over both rounds.
    const [upstream, ...others] = of(spans, client);
    expect(others).toEqual([]);
    expect(upstream).toMatchObject({ traceId: first?.traceId, parentSpanId: first?.spanId });
    expect(BigInt(upstream?.endTimeUnixNano ?? 0)).toBeGreaterThan(BigInt(first?.endTimeUnixNano ?? 0));
  });
});

describe("sampling", () => {
  test("follows the caller's flag, and takes none of the rest at 0 percent", async () => {
    await using sink = await startOtlpSink();
    const admin = await startAdmin(
      { mcpServers: {}, junctor: { traces: tracing(sink, { percent: 0 }) } },
      { local },
    );
    await callTool(admin, "add", { a: 1, b: 2 });
    await callTool(
      admin,
      "add",
      { a: 1, b: 2 },
      { _meta: { traceparent: traceparent.replace(/01$/, "00") } },
    );
    await callTool(admin, "add", { a: 1, b: 2 }, { _meta: { traceparent } });
    await callTool(admin, "add", { a: 1, b: 2 }, { _meta: { traceparent } }, {}, (body) =>
      body.replace("traceparent", String.raw`tracep\u0061rent`),
    );
    for (const wrong of [
      "",
      "00-0-0-01",
      `ff${traceparent.slice(2)}`,
      7,
      `00-${"0".repeat(32)}-${parentId}-01`,
    ])
      await callTool(admin, "add", { a: 1, b: 2 }, { _meta: { traceparent: wrong } });
    expect((await spansOf(sink, admin)).map(({ parentSpanId }) => parentSpanId)).toEqual([
      parentId,
      parentId,
    ]);
  });
});

test("a collector that switches protocols costs its spans only, and is reported once", async () => {
  const collector = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.end("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    );
  });
  await once(collector.listen(0, "127.0.0.1"), "listening");
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const admin = await startAdmin({ mcpServers: {}, junctor: { traces: { endpoint } } }, { local });
  const call = (): Promise<Called> => callTool(admin, "add", { a: 1, b: 2 });
  await Promise.all(Array.from({ length: 600 }, call));
  await expect
    .poll(async () => (await admin.call("/api/logs?level=warn")).json.lines)
    .toMatchObject([{ text: "spans cannot be sent, and are dropped" }]);
  expect(await call()).toMatchObject({ result: { content: [{ text: "3" }] } });
  await admin[Symbol.asyncDispose]();
  collector.close();
});

test("a collector that is away costs no call, and is reported once", async () => {
  await using sink = await startOtlpSink();
  sink.status = 400;
  const admin = await startAdmin({ mcpServers: {}, junctor: { traces: tracing(sink) } }, { local });
  const made = Array.from({ length: 1200 }, () => callTool(admin, "add", { a: 1, b: 2 }));
  await Promise.all(made);
  await expect.poll(() => sink.headers.length).toBeGreaterThan(1);
  // The collector has answered before the gateway knows.
  await expect
    .poll(async () => (await admin.call("/api/logs?level=warn")).json.lines)
    .toMatchObject([{ text: "spans cannot be sent, and are dropped" }]);
  await admin[Symbol.asyncDispose]();
});
