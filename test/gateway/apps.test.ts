// Tools with views behind a gateway: whose page is read, and which tools a view reaches.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { modelTools } from "../../packages/client/src/client/reads.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import type { Tool } from "../../packages/core/src/mcp/types.ts";
import { createGateway, type Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { defineView } from "../../packages/server/src/registry/app-view.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { toProvider } from "../support/use-provider.ts";

const uri = "ui://get-time/mcp-app.html";
const csp = { connectDomains: ["https://example.com"] };

/** A clock with a page at the URI that all clocks have, and a tool for its page alone. */
function createClock(name: string, page = `<p>${name}</p>`): Registry {
  const registry = createRegistry();
  const view = defineView({ uri, html: page, csp, permissions: { clipboardWrite: {} } });
  registry.register("get-time", { view }, (_, { canShow }) => `${name} ${String(canShow(view))}`);
  registry.register("set-zone", { visibility: ["app"] }, () => `${name} zone`);
  registry.register(`only-${name}`, { visibility: ["app"] }, () => `${name} alone`);
  return registry;
}

/** Names a page in its tool and does not list it, in the older form, and names another's page in its result. */
const unlisted = toProvider(
  [{ name: "old", inputSchema: { type: "object" }, _meta: { "ui/resourceUri": "ui://old/page.html" } }],
  ({ method, name }) => ({
    kind: "complete",
    result: RawJson.fromValue(
      method === "tools/call"
        ? {
            content: [{ type: "resource_link", uri, name: "theirs" }],
            _meta: { ui: { resourceUri: uri } },
          }
        : { contents: [{ uri: name, mimeType: "text/html;profile=mcp-app", blob: btoa("<p>old</p>") }] },
    ),
  }),
  { offers: () => ({ serves: (method) => /^(?:tools|resources)\/(?!subscribe)/.test(method) }) },
);

const byName = (tools: readonly Tool[], name: string): Tool => {
  const found = tools.find((tool) => tool.name === name);
  if (found === undefined)
    throw new Error(`${name} is not among ${tools.map((tool) => tool.name).join(", ")}`);
  return found;
};

describe.each(["modern", "legacy"] as const)("views of %s servers behind a gateway", (serves) => {
  const listeners: HttpListener[] = [];
  let gateway: Gateway;
  const clients: Client[] = [];
  const open = async (options: Parameters<typeof connect>[1] = { views: true }): Promise<Client> => {
    const client = await connect({ server: gateway.server }, options);
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    const servers = { first: createClock("first"), second: createClock("second"), old: unlisted };
    const mcpServers = Object.fromEntries(
      await Promise.all(
        Object.entries(servers).map(async ([name, provider]) => {
          const server = createServer(provider, { name, version: "1" }, { serves });
          const listener = await listenHttp(server, { port: 0, graceMs: 100 });
          listeners.push(listener);
          return [name, { url: listener.url }] as const;
        }),
      ),
    );
    gateway = await createGateway({ mcpServers });
    await gateway.ready;
  });
  afterAll(async () => {
    for (const client of clients) await client.close();
    await gateway.close();
    for (const listener of listeners) await listener.close();
  });

  test.each([[undefined], ["2025-11-25" as const], ["2025-06-18" as const]])(
    "each tool has the page of its own server, for a caller of %s",
    async (revision) => {
      const client = await open({ views: true, ...(revision === undefined ? {} : { revision }) });
      const tools = await client.listTools();
      const [one, two, old] = ["first__get-time", "second__get-time", "old__old"].map((name) =>
        byName(tools, name),
      );
      expect(await client.readView(one as Tool)).toEqual({
        uri,
        html: "<p>first</p>",
        csp,
        permissions: { clipboardWrite: {} },
      });
      expect(await client.readView(two as Tool)).toMatchObject({
        uri: "ui://second/get-time/mcp-app.html",
        html: "<p>second</p>",
        csp,
      });
      expect((two as Tool)._meta).toMatchObject({
        ui: { resourceUri: "ui://second/get-time/mcp-app.html" },
        "ui/resourceUri": "ui://second/get-time/mcp-app.html",
        "dev.junctor/origin": { server: "second", name: "get-time" },
      });
      expect(await client.readView(old as Tool)).toEqual({ uri: "ui://old/page.html", html: "<p>old</p>" });
      const uris = (await client.listResources()).map((resource) => resource.uri);
      expect(uris).toEqual([uri, "ui://second/get-time/mcp-app.html"]);
    },
  );

  test("a result that names the page of another server leads nowhere", async () => {
    const client = await open();
    const { content, _meta } = await client.callTool("old__old");
    expect(content).toMatchObject([{ uri: "ui://old/get-time/mcp-app.html" }]);
    expect(_meta).toMatchObject({ ui: { resourceUri: "ui://old/get-time/mcp-app.html" } });
    await expect(client.readResource("ui://old/get-time/mcp-app.html")).rejects.toThrow("not found");
    await expect(client.readResource("ui://nobody/page.html")).rejects.toThrow("not found");
  });

  test("a tool learns whether its caller shows views", async () => {
    const shows = await open();
    const shown = await shows.callTool("first__get-time");
    const plain = await (await open({})).callTool("first__get-time");
    expect([shown.content, plain.content]).toMatchObject([
      [{ text: "first true" }],
      [{ text: "first false" }],
    ]);
  });

  test("tools for views alone are kept from callers that show none, and from models", async () => {
    const plain = await open({});
    const names = (await plain.listTools()).map(({ name }) => name);
    expect(names).toEqual(["first__get-time", "second__get-time", "old__old"]);
    await expect(plain.callTool("first__set-zone")).rejects.toThrow("Unknown tool");
    const client = await open();
    const tools = await client.listTools();
    expect(tools).toHaveLength(7);
    expect(modelTools(tools).map(({ name }) => name)).toEqual(names);
  });

  test("a view calls the tools of its own server by their own names", async () => {
    const client = await open();
    const tools = await client.listTools();
    const second = byName(tools, "second__get-time");
    const called = await client.callFromApp(second, "set-zone");
    expect(called.content).toMatchObject([{ text: "second zone" }]);
    await expect(client.callFromApp(second, "only-first")).rejects.toThrow("not found");
    await expect(client.callFromApp(second, "old")).rejects.toThrow("not found");
  });

  test("a bare name is resolved where one server can be meant, and refused with the candidates where several can", async () => {
    const client = await open();
    const one = await client.callTool("only-first", {}, { validate: false });
    expect(one.content).toMatchObject([{ text: "first alone" }]);
    const several = client.callTool("set-zone", {}, { validate: false });
    await expect(several).rejects.toThrow("call one of first__set-zone, second__set-zone");
    await expect(client.callTool("nothing", {}, { validate: false })).rejects.toThrow("Unknown tool");
  });
});

test("a caller that may not read a page is not shown it, and resolves no bare name to a tool it may not use", async () => {
  const config = {
    mcpServers: { first: { command: "first" }, second: { command: "second" } },
    junctor: { deny: ["first__ui://*", "second__set-zone"] },
  };
  const local = { first: createClock("first"), second: createClock("second") };
  await using gateway = await createGateway(config, { local });
  await gateway.ready;
  await using client = await connect({ server: gateway.server }, { views: true });
  const tools = await client.listTools();
  const viewOf = (name: string): unknown =>
    (byName(tools, name)._meta?.["ui"] as { resourceUri?: unknown } | undefined)?.resourceUri;
  expect([viewOf("first__get-time"), viewOf("second__get-time")]).toEqual([
    undefined,
    "ui://second/get-time/mcp-app.html",
  ]);
  expect(byName(tools, "first__get-time")._meta).not.toHaveProperty("ui/resourceUri");
  await expect(client.readResource(uri)).rejects.toThrow("not found");
  const resolved = await client.callTool("set-zone", {}, { validate: false });
  expect(resolved.content).toMatchObject([{ text: "first zone" }]);
});

test("a page of 4 MB and markup in names pass unchanged", async () => {
  const page = `<!doctype html><script>"${"x".repeat(4 * 1024 * 1024)}"</script>`;
  const registry = createRegistry();
  const view = defineView({ uri: "ui://big/<b>.html", html: page, title: '"><script>alert(1)</script>' });
  registry.register("big", { view, title: "<img src=x onerror=alert(1)>" }, () => "ok");
  await using gateway = await createGateway({ mcpServers: {} }, { local: { big: registry } });
  await gateway.ready;
  await using listener = await listenHttp(gateway.server, { port: 0 });
  await using client = await connect(listener.url, { views: true });
  const [tool] = await client.listTools();
  expect((await client.readView(tool as Tool)).html).toHaveLength(page.length);
  expect(tool?.title).toBe("<img src=x onerror=alert(1)>");
});
