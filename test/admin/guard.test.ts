// Who may reach the admin API: the key, Host and Origin, bodies, and the headers of answers.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listenAdmin } from "../../packages/junctor/src/admin/listen-admin.ts";
import { routes } from "../../packages/junctor/src/admin/routes.ts";
import { createDemoRegistry } from "../../packages/junctor/src/cli/serve/demo.ts";
import { sendAdmin, startAdmin, type TestAdmin } from "./support/admin.ts";

let admin: TestAdmin;
beforeAll(async () => {
  admin = await startAdmin({ mcpServers: {} }, { local: { demo: createDemoRegistry() } });
});
afterAll(() => admin[Symbol.asyncDispose]());

const api = routes.map(({ method, path }) => [method, path]).filter(([, path]) => path !== "/metrics");

test.each(api)("%s %s needs the key", async (method, path) => {
  const body = method === "GET" || method === "DELETE" ? undefined : {};
  for (const authorization of [undefined, "Bearer wrong", "Bearer ", `Basic ${admin.key}`, admin.key]) {
    const reply = await sendAdmin(`${admin.adminUrl}${path}`, "", {
      method,
      body,
      headers: { authorization },
    });
    expect([reply.status, reply.json.error.code, reply.headers["www-authenticate"]]).toEqual([
      401,
      "admin.no_key",
      "Bearer",
    ]);
  }
});

test("health and metrics need no key on loopback", async () => {
  for (const path of ["/live", "/ready", "/health", "/metrics"]) {
    const reply = await sendAdmin(`${admin.adminUrl}${path}`, "", { headers: { authorization: undefined } });
    expect([path, reply.status]).toEqual([path, 200]);
  }
});

describe("a request that a page of another site could have made is refused, also with the key", () => {
  const port = (): string => new URL(admin.adminUrl).port;
  test.each([
    ["Host", () => ({ host: "evil.example.com" })],
    ["Host with our port", () => ({ host: `evil.example.com:${port()}` })],
    ["Host without the port", () => ({ host: "127.0.0.1" })],
    ["Origin", () => ({ origin: "https://evil.example.com" })],
    ["null Origin", () => ({ origin: "null" })],
    ["Origin of another port", () => ({ origin: "http://127.0.0.1:1" })],
    ["Origin that begins like ours", () => ({ origin: `http://127.0.0.1:${port()}.evil.example.com` })],
  ])("%s", async (_, headers) => {
    for (const path of ["/api/status", "/metrics", "/live", "/"]) {
      const reply = await admin.call(path, { headers: headers() });
      expect([reply.status, reply.json.error.code]).toEqual([403, "admin.forbidden"]);
      expect(reply.headers["access-control-allow-origin"]).toBeUndefined();
    }
  });

  test("its own page may", async () => {
    for (const origin of [admin.adminUrl, `http://localhost:${port()}`])
      expect((await admin.call("/api/status", { headers: { origin } })).status).toBe(200);
  });

  test("a preflight request is refused", async () => {
    const reply = await admin.call("/api/drain", {
      method: "OPTIONS",
      headers: { origin: admin.adminUrl, "access-control-request-method": "POST" },
    });
    expect(reply.status).toBe(405);
    expect(Object.keys(reply.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])(
    "a form of the type %s",
    async (type) => {
      const reply = await admin.call("/api/drain", { body: "{}", headers: { "content-type": type } });
      expect([reply.status, reply.json.error.code]).toEqual([415, "admin.not_json"]);
    },
  );
});

test("every answer forbids scripts of others, frames, sniffing and caches", async () => {
  for (const path of ["/api/status", "/nothing", "/live", "/metrics", "/api/openapi.json"]) {
    const { headers } = await admin.call(path);
    const policy = String(headers["content-security-policy"]);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain("unsafe");
    expect(headers).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    });
    expect(headers["set-cookie"]).toBeUndefined();
  }
});

test.each([
  ["no JSON", "{", 400],
  ["an array", "[]", 400],
  ["an unknown member", '{"levle":"info"}', 400],
  ["a wrong value", '{"level":"loud"}', 400],
  ["too many levels", `{"level":${"[".repeat(200)}${"]".repeat(200)}}`, 400],
  ["too many bytes", `{"level":"${"x".repeat(1024 * 1024)}"}`, 413],
])("a body with %s is refused, and the message says what to do", async (_, body, status) => {
  const reply = await admin.call("/api/log-level", { method: "PUT", body });
  expect(reply.status).toBe(status);
  expect(reply.json.error.message.length).toBeGreaterThan(10);
});

test("a wrong path, method or query says what there is", async () => {
  expect((await admin.call("/api/nothing")).json.error.code).toBe("admin.not_found");
  const wrong = await admin.call("/api/status", { body: {} });
  expect([wrong.status, wrong.headers["allow"]]).toEqual([405, "GET"]);
  expect((await admin.call("/api/charts?by=moon")).json.error.message).toContain("total, server, tool");
  expect((await admin.call("/api/logs?limit=1001")).status).toBe(400);
  expect((await admin.call("/api/servers/%ff")).status).toBe(400);
  expect((await admin.call("/api/servers/nobody")).json.error.message).toContain("there are demo");
  expect((await admin.call("/api/events?only=moon")).status).toBe(400);
});

test("the description has every route, and no other", async () => {
  const { paths } = (await admin.call("/api/openapi.json")).json;
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`),
  );
  expect(described.toSorted()).toEqual(routes.map(({ method, path }) => `${method} ${path}`).toSorted());
});

describe("a key of the config", () => {
  const key = "an-admin-key-0123456789";
  const sha256 = createHash("sha256").update(key).digest("hex");

  test("is the only one, also for metrics", async () => {
    await using own = await startAdmin(
      { mcpServers: {}, junctor: { admin: { port: 0, key: { env: "ADMIN_KEY" } } } },
      { env: { ADMIN_KEY: key }, key, local: { demo: createDemoRegistry() } },
    );
    expect((await own.call("/api/status")).status).toBe(200);
    expect((await own.call("/metrics")).status).toBe(200);
    expect((await sendAdmin(`${own.adminUrl}/metrics`, "")).status).toBe(401);
    expect((await sendAdmin(`${own.adminUrl}/live`, "")).status).toBe(200);
  });

  test("is needed beyond loopback", async () => {
    const tcp = {
      host: "0.0.0.0",
      port: 0,
      isFlexible: false,
      keyHash: sha256,
      isOwnKey: false,
      allowedHosts: [],
    };
    const listening = listenAdmin({
      source: {} as never,
      tcp,
      pageFolder: "nowhere",
      onWarning: () => {},
    });
    await expect(listening).rejects.toThrow("junctor");
  });
});
