// The description of the admin API, held against what a real gateway answers.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { accessReport, checkReport } from "../../packages/junctor/src/admin/answers.ts";
import { routes } from "../../packages/junctor/src/admin/routes.ts";
import type { AnyShape } from "../../packages/junctor/src/admin/shape.ts";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { deadServer, statefulServer } from "../gateway/support/servers.ts";
import { root } from "../source-graph.ts";
import { cliServer, makeConfigFolder } from "../support/config-file.ts";
import { json, mirrored, modernCall, toPairs } from "../support/http-wire.ts";
import { junctor } from "../support/junctor-bin.ts";
import { type AdminReply, type EventReader, startAdmin, type TestAdmin } from "./support/admin.ts";

const asking = fileURLToPath(new URL("../fixtures/bridge-upstream.mjs", import.meta.url));
const local = { demo: createDemoRegistry() };

/** Things that servers wrote, to which they may add members. */
const open = ["Tool", "Prompt", "Resource", "Template", "Question"];

/** The faults of an answer. A member that is not described is one, although clients have to accept it. */
function findFaults(shape: AnyShape, value: unknown): readonly string[] {
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  const schemas = Object.entries(shape.definitions).map(
    ([name, schema]) => [name, open.includes(name) ? schema : closed(schema)] as const,
  );
  const schema = {
    ...(closed(shape.schema) as object),
    components: { schemas: Object.fromEntries(schemas) },
  };
  const validate = ajv.compile(schema);
  validate(value);
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return "properties" in inner ? { ...inner, additionalProperties: false } : inner;
}

/** Leaves a call of a legacy server parked with its question, and a legacy session open. */
async function occupy(admin: TestAdmin): Promise<void> {
  const capabilities = { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } };
  const message = modernCall("asking__ask", { nonce: "n", rounds: [["form"]] }, { _meta: capabilities });
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "old", version: "1" } },
  };
  for (const [body, more] of [
    [message, mirrored(message)],
    [initialize, {}],
  ] as const) {
    const headers = { ...more, "content-type": json, accept: `${json}, text/event-stream` };
    const pairs = toPairs(headers) as [string, string][];
    const response = await fetch(admin.url, { method: "POST", headers: pairs, body: JSON.stringify(body) });
    expect(response.status).toBe(200);
    await response.text();
  }
}

test("every route answers with what its description says", async () => {
  const server = { command: process.execPath, args: [asking, "--serves", "legacy"] };
  const mcpServers = {
    store: statefulServer(),
    dead: deadServer,
    asking: server,
    off: { ...statefulServer(), disabled: true },
  };
  const keys = {};
  await using admin = await startAdmin({ mcpServers, junctor: { keys } }, { local });
  await occupy(admin);
  using tried = await admin.open("/api/try", { tool: "greet" });
  await expect.poll(() => tried.of("question")).toHaveLength(1);
  const { try: id, call } = tried.first("began");
  using cancelled = await admin.open("/api/try", { tool: "countdown", arguments: { from: 100 } });
  await expect.poll(() => cancelled.of("progress").length).toBeGreaterThan(0);
  const body = {};
  const answers = { name: { action: "accept", content: { name: "Ada" } } };
  /** In an order in which each can be called: the last ones end the gateway. */
  const calls: { readonly [route: string]: () => Promise<AdminReply> } = {
    "GET /metrics": () => admin.call("/metrics"),
    "GET /api/openapi.json": () => admin.call("/api/openapi.json"),
    "GET /api/status": () => admin.call("/api/status"),
    "GET /api/servers": () => admin.call("/api/servers"),
    "GET /api/servers/:name": () => admin.call("/api/servers/asking"),
    "GET /api/catalog": () => admin.call("/api/catalog?server=demo"),
    "GET /api/callers": () => admin.call("/api/callers"),
    "GET /api/calls": () => admin.call("/api/calls"),
    "GET /api/calls/:id": () => admin.call(`/api/calls/${call}`),
    "GET /api/history": () => admin.call("/api/history?is=all&limit=5&sinceMs=60000"),
    "GET /api/usage": () => admin.call("/api/usage?by=caller"),
    "GET /api/settings": () => admin.call("/api/settings"),
    "GET /api/sessions": () => admin.call("/api/sessions"),
    "GET /api/parked": () => admin.call("/api/parked"),
    "GET /api/approvals": () => admin.call("/api/approvals"),
    "GET /api/charts": () => admin.call("/api/charts?by=server&top=5"),
    "GET /api/problems": () => admin.call("/api/problems"),
    "GET /api/logs": () => admin.call("/api/logs?level=info&limit=5"),
    "POST /api/servers/:name/restart": () => admin.call("/api/servers/store/restart", { body }),
    "POST /api/servers/:name/stop": () => admin.call("/api/servers/store/stop", { body }),
    "POST /api/servers/:name/start": () => admin.call("/api/servers/store/start", { body }),
    "PUT /api/log-level": () => admin.call("/api/log-level", { method: "PUT", body: { level: "info" } }),
    "POST /api/try/:id/answers": () => admin.call(`/api/try/${id}/answers`, { body: { answers } }),
    "DELETE /api/try/:id": () => admin.call(`/api/try/${cancelled.first("began").try}`, { method: "DELETE" }),
    "POST /api/drain": () => admin.call("/api/drain", { body }),
    "POST /api/stop": () => admin.call("/api/stop", { body }),
  };
  /** They need a gateway of their own, or answer with events; tests below call them. */
  const elsewhere = [
    "GET /api/events",
    "POST /api/try",
    "POST /api/reload",
    "POST /api/callers/:name/revoke",
    "POST /api/callers/:name/restore",
    "POST /api/approvals/:id",
  ];
  expect([...Object.keys(calls), ...elsewhere].toSorted()).toEqual(
    routes.map(({ method, path }) => `${method} ${path}`).toSorted(),
  );
  for (const [name, send] of Object.entries(calls)) {
    const route = routes.find(({ method, path }) => name === `${method} ${path}`);
    const reply = await send();
    const answer: unknown = route?.type === undefined ? JSON.parse(reply.text) : reply.text;
    expect({ name, status: reply.status }).toEqual({ name, status: route?.status ?? 200 });
    expect({ name, faults: findFaults(route?.answer as AnyShape, answer) }).toEqual({ name, faults: [] });
  }
  await expect.poll(() => tried.isEnded && cancelled.isEnded).toBe(true);
  expectDescribed("POST /api/try", [tried, cancelled]);
});

function expectDescribed(name: string, readers: readonly EventReader[]): void {
  const route = routes.find(({ method, path }) => name === `${method} ${path}`);
  const faults = readers
    .flatMap(({ events }) => events)
    .map(({ kind, data }) => ({
      kind,
      faults: findFaults(only(route?.events as AnyShape), { [kind]: data }),
    }));
  expect(faults.filter((each) => each.faults.length > 0)).toEqual([]);
}

/** The shape of an object with one of the members. */
function only(shape: AnyShape): AnyShape {
  return { ...shape, schema: { ...shape.schema, required: [] } };
}

test("events are what the description says, of every kind", async () => {
  await using admin = await startAdmin({ mcpServers: { store: statefulServer() } }, { local });
  using events = await admin.open("/api/events");
  using picked = await admin.open("/api/events?only=log");
  await expect.poll(() => events.of("hello")).toHaveLength(1);
  using tried = await admin.open("/api/try", { tool: "store__die" });
  await expect.poll(() => tried.isEnded).toBe(true);
  const kinds = ["hello", "calls", "server", "status", "log", "problems"];
  await expect.poll(() => kinds.filter((kind) => events.of(kind).length === 0)).toEqual([]);
  await expect.poll(() => picked.of("log").length).toBeGreaterThan(0);
  expect(new Set(picked.events.map(({ kind }) => kind))).toEqual(new Set(["hello", "log"]));
  expectDescribed("GET /api/events", [events, picked]);
  expectDescribed("POST /api/try", [tried]);
});

test("an approval is listed and answered as the description says", async () => {
  const rules = [{ ask: ["*"], of: "operator" }];
  await using admin = await startAdmin({ mcpServers: {}, junctor: { rules } }, { local });
  const message = modernCall("greet", { name: "Ada" });
  const headers = { ...mirrored(message), "content-type": json, accept: `${json}, text/event-stream` };
  const pairs = toPairs(headers) as [string, string][];
  const call = fetch(admin.url, { method: "POST", headers: pairs, body: JSON.stringify(message) });
  const list = async (): Promise<readonly { readonly id: string }[]> =>
    (
      JSON.parse((await admin.call("/api/approvals")).text) as {
        readonly approvals: { readonly id: string }[];
      }
    ).approvals;
  await expect.poll(list).toHaveLength(1);
  const shapeOf = (method: string, path: string): AnyShape =>
    routes.find((route) => route.method === method && route.path === path)?.answer as AnyShape;
  const approvals = await list();
  expect(findFaults(shapeOf("GET", "/api/approvals"), { approvals })).toEqual([]);
  const path = `/api/approvals/${approvals[0]?.id}`;
  const { text } = await admin.call(path, { body: { answer: "deny" } });
  expect(findFaults(shapeOf("POST", "/api/approvals/:id"), JSON.parse(text))).toEqual([]);
  expect(await (await call).text()).toContain("denied it");
  expect((await admin.call(path, { body: { answer: "approve" } })).status).toBe(409);
});

test("revoking answers with what the description says", async () => {
  const sha256 = "0".repeat(64);
  await using admin = await startAdmin({ mcpServers: {}, junctor: { keys: { ada: { sha256 } } } }, { local });
  for (const act of ["revoke", "restore"]) {
    const route = routes.find(({ path }) => path === `/api/callers/:name/${act}`);
    const { text } = await admin.call(`/api/callers/ada/${act}`, { body: {} });
    expect(findFaults(route?.answer as AnyShape, JSON.parse(text))).toEqual([]);
  }
});

test.each([
  ["GET", "/api/logs?levle=warn", undefined, 'The query has the unknown member "levle"; did you mean level?'],
  ["GET", "/api/logs?level=loud", undefined, "level must be one of debug, info, warn, error"],
  ["GET", "/api/charts?top=1001", undefined, "top must be a whole number from 0 to 1000"],
  ["GET", "/api/charts?top=-1", undefined, "top must be a whole number from 0 to 1000"],
  ["POST", "/api/reload", { version: 1 }, "version must be a string"],
  [
    "POST",
    "/api/reload",
    { verison: "1" },
    'The body has the unknown member "verison"; did you mean version?',
  ],
  ["PUT", "/api/log-level", {}, "level must be one of trace, debug, info, warn, error, silent"],
  ["POST", "/api/try", { tool: "echo", arguments: [] }, "arguments must be an object"],
  ["POST", "/api/try", {}, "Write one of tool, prompt and resource"],
  ["POST", "/api/try/t1/answers", {}, "answers must be an object"],
  ["POST", "/api/drain", { now: true }, 'The body has the unknown member "now"; it takes no members'],
] as const)("%s %s %j is refused", async (method, path, body, message) => {
  await using admin = await startAdmin({ mcpServers: {} }, { local });
  const reply = await admin.call(path, { method, ...(body && { body }) });
  expect([reply.status, reply.json.error]).toEqual([400, { code: "admin.bad_request", message }]);
});

test("the page and the commands use only routes that exist", () => {
  /** A part that the code fills in matches any part of a route. */
  const isAsked = (asked: string, path: string): boolean => {
    const [parts, wanted] = [path.split("/"), asked.split("/")];
    const fits = (part: string, at: number): boolean => wanted[at] === "…" || part === wanted[at];
    return parts.length === wanted.length && parts.every(fits);
  };
  const folders = ["packages/page", "packages/junctor/src/cli"].map((folder) => join(root, folder));
  const asked = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name) && !name.startsWith("node_modules"))
      .flatMap((name) =>
        [...readFileSync(join(folder, name), "utf8").matchAll(/["`](\/api\/[^"`?]*)/g)].map(([, path = ""]) =>
          path.replaceAll(/\$\{[^}]*\}/g, "…"),
        ),
      ),
  );
  expect(asked.length).toBeGreaterThan(10);
  expect(asked.filter((path) => !routes.some((route) => isAsked(path, route.path)))).toEqual([]);
});

test("check --json and why --json print what is described", async () => {
  await using folder = await makeConfigFolder();
  const config = await folder.write({
    mcpServers: { a: cliServer({ tools: ["x"] }), b: cliServer({ tools: ["x"] }), c: deadServer },
    junctor: {
      keys: { ada: { sha256: "0".repeat(64), allow: ["x"] } },
      servers: { a: { prefix: false }, b: { prefix: false } },
    },
  });
  const checked = JSON.parse((await junctor(["check", "--config", config, "--json"])).stdout) as object;
  expect(checked).toMatchObject({ servers: { length: 3 }, collisions: { length: 1 } });
  expect(findFaults(checkReport, checked)).toEqual([]);
  const why = await junctor(["why", "ada", "x", "--config", config, "--json"]);
  expect(findFaults(accessReport, JSON.parse(why.stdout))).toEqual([]);
});

test("docs/reference/admin-api.md says what the description says", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts/admin-doc.mjs"), "--check"]);
  expect({ status, stderr: String(stderr) }).toEqual({ status: 0, stderr: "" });
});
