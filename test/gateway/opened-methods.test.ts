// Methods and results of extensions that the gateway does not know: refused, unless the config opens them for one server.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { Server } from "../../packages/core/src/mcp/server.ts";
import type { ClientCapabilities } from "../../packages/core/src/mcp/types.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { createTaskCaller } from "./support/task-caller.ts";

const id = "com.example/maps";
const opened = { [id]: { methods: ["com.example/*"], resultTypes: ["com.example/chart"] } };

/** A server that has a method of its own and says which params it got, and a tool with a result of its own type. */
function createMaps(): Server {
  const registry = createRegistry();
  registry.register("draw", {}, () => "drawn");
  const server = createServer(registry, { name: "maps", version: "1" });
  return {
    ...server,
    handle: (request, wire) => {
      const name = request.params?.at("name")?.value;
      if (request.method === "com.example/locate")
        return RawJson.fromText(
          `{"resultType":"complete","got":${request.params?.at("at")?.text ?? "null"},"secret":"4111 1111 1111 1111"}`,
        );
      if (request.method === "events/list") {
        const { _meta, ...sent } = (request.params?.value ?? {}) as {
          readonly _meta: { readonly [key: string]: object };
        };
        const { extensions } = _meta["io.modelcontextprotocol/clientCapabilities"] as ClientCapabilities;
        return RawJson.fromValue({ resultType: "complete", events: ["a"], declared: extensions, sent });
      }
      if (request.method === "tools/call" && name === "draw")
        return RawJson.fromText('{"resultType":"com.example/chart","handle":1.0}');
      return server.handle(request, wire);
    },
  };
}

describe("a method that the protocol does not have", () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-methods-"));
  const audit = join(folder, "audit.jsonl");
  let behind: HttpListener;
  let at: TestGateway;
  const config = (servers: object, more: object = {}): object => ({
    mcpServers: { one: { type: "http", url: behind.url }, two: { type: "http", url: behind.url } },
    junctor: { servers, redact: ["credit-card"], audit: { file: audit }, ...more },
  });
  beforeAll(async () => {
    behind = await listenHttp(createMaps(), { port: 0 });
    at = await startTestGateway(config({}));
  });
  afterAll(async () => {
    await at?.[Symbol.asyncDispose]();
    await behind?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const capabilities = { extensions: { [id]: {} } };
  const ask = (method: string, params: { readonly [member: string]: unknown }) =>
    createTaskCaller(at.url, { capabilities })(method, params);

  test("is refused, and so is a result of such a type", async () => {
    expect(await ask("com.example/locate", { at: 1 })).toMatchObject({
      status: 404,
      error: { code: -32601 },
    });
    expect((await ask("tools/call", { name: "one__draw", arguments: {} })).error).toMatchObject({
      code: -32603,
      data: { code: "upstream.failed" },
    });
  });

  test("passes as bytes when the config opens it for one server, redacted, limited and on record", async () => {
    const limits = { tools: { "com.example/*": { callsPerMinute: 2 } } };
    await at.gateway.update(config({ one: { extensions: opened } }, { limits }));
    await expect
      .poll(async () => (await ask("com.example/locate", { at: { x: 1 } })).result)
      .toMatchObject({
        got: { x: 1 },
        secret: "[redacted]",
      });
    expect((await ask("tools/call", { name: "one__draw", arguments: {} })).result).toMatchObject({
      resultType: "com.example/chart",
    });
    const records = readFileSync(audit, "utf8").split("\n").filter(Boolean);
    expect(records.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({ kind: "method", tool: "com.example/locate", server: "one", outcome: "ok" }),
    );
    await expect
      .poll(async () => (await ask("com.example/locate", { at: 1 })).error?.message)
      .toContain("No more than 2 calls a minute");
  });

  test("passes also where results of some server have a cap", async () => {
    const servers = { one: { extensions: opened }, two: { maxResultTokens: 1000 } };
    await at.gateway.update(config(servers));
    await expect
      .poll(async () => (await ask("com.example/locate", { at: { x: 1 } })).result)
      .toMatchObject({ got: { x: 1 } });
  });

  test("that is opened for several servers leads to none of them", async () => {
    await at.gateway.update(config({ one: { extensions: opened }, two: { extensions: opened } }));
    const { error } = await ask("com.example/locate", { at: 1 });
    expect(error).toMatchObject({ code: -32602 });
    expect(error.message).toContain("one, two");
  });

  test("of a server that the caller may not use is unknown", async () => {
    await at.gateway.update(config({ one: { extensions: opened } }, { deny: ["one__*"] }));
    expect((await ask("com.example/locate", { at: 1 })).error).toMatchObject({ code: -32601 });
  });

  test("of an extension of the protocol that is not known here passes like any other", async () => {
    const events = "io.modelcontextprotocol/events";
    const extensions = { [events]: { methods: ["events/*"] } };
    await at.gateway.update(config({ one: { extensions } }));
    const declaring = createTaskCaller(at.url, { capabilities: { extensions: { [events]: {} } } });
    await expect
      .poll(async () => (await declaring("events/list", { cursor: "c", unknown: 1 })).result)
      .toMatchObject({ events: ["a"], declared: { [events]: {} }, sent: { cursor: "c", unknown: 1 } });
  });

  test("of the protocol is never opened", async () => {
    for (const method of ["tools/call", "tasks/*", "roots/list", "io.modelcontextprotocol/x", "*", "t*/x"])
      await expect(
        at.gateway.update(config({ one: { extensions: { [id]: { methods: [method] } } } })),
      ).rejects.toThrow("cannot be opened");
  });
});
