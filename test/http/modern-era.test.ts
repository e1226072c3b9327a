import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Listening, listen } from "../support/http-tools.ts";
import { initializeOf, modern, modernCall, modernMeta, modernPost, postOf } from "../support/http-wire.ts";
import { exchange, type RawReply, type RawRequest } from "../support/raw-http.ts";
import { assertValidFrame, type Frame } from "../support/wire-schema.ts";

const versionKey = "io.modelcontextprotocol/protocolVersion";
const capabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
const ping = { jsonrpc: "2.0", id: 5, method: "ping" };
const toolsList = modern("tools/list", {}, 5);

/** A modern request whose `_meta` is exactly this. */
function withMeta(meta: object, method = "tools/list"): Frame {
  return { jsonrpc: "2.0", id: 5, method, params: { _meta: meta } };
}

function claiming(version: unknown): Frame {
  return withMeta({ ...modernMeta(), [versionKey]: version });
}

interface Row {
  readonly name: string;
  readonly request: RawRequest;
  readonly status: number;
  /** Left out for answers that are not errors. */
  readonly code?: number;
  /** What the message of the error names. */
  readonly names?: string;
  /** The id that is echoed; `null` for none. */
  readonly id?: number | null;
}

const dual: readonly Row[] = [
  { name: "GET without a session", request: { method: "GET" }, status: 400, code: -32600, id: null },
  { name: "DELETE without a session", request: { method: "DELETE" }, status: 400, code: -32600, id: null },
  { name: "PUT", request: { method: "PUT" }, status: 405, code: -32600, id: null },
  {
    name: "a body that is not JSON by its media type",
    request: { headers: [["content-type", "text/plain"]], body: "{}" },
    status: 415,
    code: -32600,
    id: null,
  },
  { name: "a body that cannot be parsed", request: postOf("{"), status: 400, code: -32700, id: null },
  { name: "an empty body", request: postOf(""), status: 400, code: -32700, id: null },
  { name: "a scalar", request: postOf("5"), status: 400, code: -32600, id: null },
  { name: "an empty array", request: postOf([]), status: 400, code: -32600, id: null },
  { name: "an array with a claim", request: postOf([toolsList]), status: 400, code: -32600, id: null },
  { name: "an array without a session", request: postOf([ping]), status: 400, code: -32600, id: null },
  { name: "an array with an invalid element", request: postOf([7]), status: 400, code: -32600, id: null },
  {
    name: "a request whose id is null",
    request: postOf({ ...ping, id: null }),
    status: 400,
    code: -32600,
    id: null,
  },
  {
    name: "a response",
    request: postOf({ jsonrpc: "2.0", id: 1, result: {} }),
    status: 400,
    code: -32600,
    id: null,
  },
  {
    name: "a notification with a claim",
    request: postOf({ jsonrpc: "2.0", method: "notifications/cancelled", params: { _meta: modernMeta() } }),
    status: 202,
  },
  {
    name: "a notification with a modern header",
    request: postOf({ jsonrpc: "2.0", method: "notifications/x" }, { "mcp-protocol-version": "2026-07-28" }),
    status: 202,
  },
  {
    name: "a notification of no session",
    request: postOf({ jsonrpc: "2.0", method: "notifications/initialized" }),
    status: 400,
    code: -32600,
    id: null,
  },
  {
    name: "initialize with a claim that is not a modern envelope",
    request: postOf({
      ...initializeOf("2025-11-25"),
      params: { ...(initializeOf("2025-11-25").params as object), _meta: { [versionKey]: "2026-07-28" } },
    }),
    status: 200,
  },
  {
    name: "an envelope without capabilities",
    request: modernPost(withMeta({ [versionKey]: "2026-07-28" })),
    status: 400,
    code: -32602,
    names: capabilitiesKey,
  },
  {
    name: "an envelope whose version is not a string",
    request: modernPost(claiming(20260728)),
    status: 400,
    code: -32602,
    names: versionKey,
  },
  {
    name: "an envelope whose clientInfo is broken",
    request: modernPost(withMeta({ ...modernMeta(), "io.modelcontextprotocol/clientInfo": { name: "x" } })),
    status: 400,
    code: -32602,
    names: "clientInfo",
  },
  {
    name: "an envelope without clientInfo",
    request: modernPost(withMeta({ [versionKey]: "2026-07-28", [capabilitiesKey]: {} })),
    status: 200,
  },
  {
    name: "an envelope with a log level that is none",
    request: modernPost(withMeta({ ...modernMeta(), "io.modelcontextprotocol/logLevel": "loud" })),
    status: 400,
    code: -32602,
    names: "logLevel",
  },
  {
    name: "a version header that differs from the body",
    request: modernPost(toolsList, { "mcp-protocol-version": "2025-11-25" }),
    status: 400,
    code: -32020,
  },
  {
    name: "a version header that differs from an unknown version in the body",
    request: modernPost(claiming("v999.0.0"), { "mcp-protocol-version": "2026-07-28" }),
    status: 400,
    code: -32020,
  },
  {
    name: "an unknown version in both places",
    request: modernPost(claiming("v999.0.0"), { "mcp-protocol-version": "v999.0.0" }),
    status: 400,
    code: -32022,
    names: "2026-07-28",
  },
  {
    name: "a legacy version as a claim",
    request: modernPost(claiming("2025-11-25"), { "mcp-protocol-version": "2025-11-25" }),
    status: 400,
    code: -32022,
  },
  {
    name: "no version header",
    request: modernPost(toolsList, { "mcp-protocol-version": undefined }),
    status: 400,
    code: -32020,
    names: "MCP-Protocol-Version",
  },
  {
    name: "no Mcp-Method",
    request: modernPost(toolsList, { "mcp-method": undefined }),
    status: 400,
    code: -32020,
    names: "Mcp-Method",
  },
  {
    name: "an Mcp-Method in another case",
    request: modernPost(toolsList, { "mcp-method": "Tools/List" }),
    status: 400,
    code: -32020,
  },
  {
    name: "an unknown method",
    request: modernPost(modern("tools/invent", {}, 5)),
    status: 404,
    code: -32601,
  },
  ...["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"].map(
    (method): Row => ({
      name: `${method} with a modern envelope`,
      request: modernPost(modern(method, {}, 5)),
      status: 404,
      code: -32601,
    }),
  ),
  {
    name: "a call that needs a capability the client did not declare",
    request: modernPost({ ...modernCall("greet"), id: 5 }),
    status: 400,
    code: -32021,
  },
  {
    name: "params that do not fit the method",
    request: modernPost(modern("tools/call", { name: 7 }, 5)),
    status: 200,
    code: -32602,
  },
  {
    name: "an unknown tool",
    request: modernPost({ ...modernCall("nowhere"), id: 5 }),
    status: 200,
    code: -32602,
    names: "nowhere",
  },
  {
    name: "initialize without a claim under a modern header",
    request: postOf({ ...initializeOf("2025-11-25"), id: 5 }, { "mcp-protocol-version": "2026-07-28" }),
    status: 400,
    code: -32020,
  },
  {
    name: "another request without a claim under a modern header",
    request: postOf(
      { jsonrpc: "2.0", id: 5, method: "tools/list" },
      { "mcp-protocol-version": "2026-07-28" },
    ),
    status: 400,
    code: -32602,
    names: versionKey,
  },
  {
    name: "a request under a version header nobody knows",
    request: postOf({ jsonrpc: "2.0", id: 5, method: "tools/list" }, { "mcp-protocol-version": "soon" }),
    status: 400,
    code: -32602,
  },
  {
    name: "a legacy request without a session",
    request: postOf({ jsonrpc: "2.0", id: 5, method: "tools/list" }),
    status: 400,
    code: -32002,
  },
  {
    name: "a lone progress token, which is not a claim",
    request: postOf(withMeta({ progressToken: 1 }, "ping")),
    status: 200,
  },
];

const modernOnly: readonly Row[] = [
  { name: "GET", request: { method: "GET" }, status: 405, code: -32600, id: null },
  { name: "DELETE", request: { method: "DELETE" }, status: 405, code: -32600, id: null },
  {
    name: "a response",
    request: postOf({ jsonrpc: "2.0", id: 1, result: {} }, { "mcp-session-id": "any" }),
    status: 400,
    code: -32600,
    id: null,
  },
  {
    name: "a batch, whatever session it names",
    request: postOf([ping], { "mcp-session-id": "any" }),
    status: 400,
    code: -32600,
    id: null,
  },
  {
    name: "initialize",
    request: postOf({ ...initializeOf("2025-11-25"), id: 5 }),
    status: 400,
    code: -32022,
    names: "2026-07-28",
  },
  {
    name: "a request without an envelope, whatever session it names",
    request: postOf({ jsonrpc: "2.0", id: 5, method: "tools/list" }, { "mcp-session-id": "any" }),
    status: 400,
    code: -32602,
    names: versionKey,
  },
  { name: "a notification", request: postOf({ jsonrpc: "2.0", method: "notifications/x" }), status: 202 },
  { name: "a modern request", request: modernPost(toolsList), status: 200 },
];

function assertRow(reply: RawReply, { status, code, names, id = 5 }: Row): void {
  expect(reply.status).toBe(status);
  expect(reply.headers["mcp-session-id"] !== undefined && code !== undefined).toBe(false);
  if (status === 202) expect(reply.body).toBe("");
  if (code === undefined) return;
  const answer = reply.json as { readonly id?: unknown; readonly error: { code: number; message: string } };
  expect(answer.error.code).toBe(code);
  expect(answer.id).toBe(id ?? undefined);
  if (names !== undefined) expect(answer.error.message).toContain(names);
  assertValidFrame("server", "2026-07-28", undefined, answer);
}

describe("which era a request is of, on an endpoint for both", () => {
  let at: Listening;
  beforeAll(async () => void (at = await listen()));
  afterAll(() => at[Symbol.asyncDispose]());

  test.each(dual)("$name: $status $code", async (row) => {
    assertRow(await exchange(at.port, row.request), row);
  });

  test.each(dual.filter(({ code }) => code !== undefined && code !== -32002 && code !== -32600))(
    "$name is answered the same when a stray session id comes with it",
    async (row) => {
      const headers = [...(row.request.headers ?? []), ["mcp-session-id", "stray"] as const];
      assertRow(await exchange(at.port, { ...row.request, headers }), row);
    },
  );

  test("an unserved version is answered with what was asked for and what is served", async () => {
    const request = modernPost(claiming("v9"), { "mcp-protocol-version": "v9" });
    const { json } = await exchange(at.port, request);
    const discovered = (await exchange(at.port, modernPost(modern("server/discover")))).json;
    expect(json).toMatchObject({ error: { data: { requested: "v9", supported: ["2026-07-28"] } } });
    expect(discovered).toMatchObject({ result: { supportedVersions: ["2026-07-28"] } });
  });

  test("a missing capability is named in the data of the error", async () => {
    const { json } = await exchange(at.port, modernPost(modernCall("greet")));
    expect(json).toMatchObject({ error: { data: { requiredCapabilities: { elicitation: {} } } } });
  });

  test("capabilities of one request are forgotten by the next, also on the same socket", async () => {
    const asking = modernCall("greet", {}, { _meta: modernMeta({ elicitation: {} }) });
    expect((await exchange(at.port, modernPost(asking))).json).toMatchObject({
      result: { resultType: "input_required" },
    });
    expect((await exchange(at.port, modernPost(modernCall("greet")))).status).toBe(400);
  });

  test("server/discover names the capabilities, how long they hold, and the server", async () => {
    const reply = await exchange(at.port, modernPost(modern("server/discover")));
    expect(reply.json).toMatchObject({
      result: {
        resultType: "complete",
        ttlMs: 0,
        cacheScope: "public",
        capabilities: { tools: {}, resources: {}, prompts: {}, logging: {} },
        _meta: { "io.modelcontextprotocol/serverInfo": { name: "http-tools", version: "1.0.0" } },
      },
    });
    assertValidFrame("server", "2026-07-28", modern("server/discover"), reply.json);
  });
});

describe("an endpoint for the modern era only", () => {
  let at: Listening;
  beforeAll(async () => void (at = await listen({}, { serves: "modern" })));
  afterAll(() => at[Symbol.asyncDispose]());

  test.each(modernOnly)("$name: $status $code", async (row) => {
    assertRow(await exchange(at.port, row.request), row);
  });

  test.each(["/sse", "/messages"])("has no %s", async (path) => {
    expect((await exchange(at.port, { method: "GET", path })).status).toBe(404);
  });
});

describe("an endpoint for the legacy era only", () => {
  let at: Listening;
  beforeAll(async () => void (at = await listen({}, { serves: "legacy" })));
  afterAll(() => at[Symbol.asyncDispose]());

  test("does not serve a modern request, and says what to do", async () => {
    const reply = await exchange(at.port, modernPost(toolsList));
    expect(reply.status).toBe(400);
    expect(reply.json).toMatchObject({
      id: 5,
      error: { message: expect.stringContaining("initialize") as string },
    });
  });

  test("refuses a session's request under a version header it does not serve", async () => {
    const begun = await exchange(at.port, postOf(initializeOf("2025-11-25")));
    const session = { "mcp-session-id": begun.headers["mcp-session-id"]! };
    const list = { jsonrpc: "2.0", id: 5, method: "tools/list" };
    expect((await exchange(at.port, postOf(list, session))).status).toBe(200);
    const headers = { ...session, "mcp-protocol-version": "2026-07-28" };
    expect((await exchange(at.port, postOf(list, headers))).status).toBe(400);
  });
});
