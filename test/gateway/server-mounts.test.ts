// One server of a gateway at a path of its own, under its own names.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { defineView } from "../../packages/server/src/registry/app-view.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const uri = "ui://clock/page.html";

function createClock(name: string): Registry {
  const resources = createResourceRegistry();
  resources.register("doc://shared", { name: "shared" }, () => name);
  const prompts = createPromptRegistry();
  prompts.register("ask", {}, () => `ask ${name}`);
  const registry = createRegistry({ resources, prompts });
  const view = defineView({ uri, html: `<p>${name}</p>` });
  registry.register("time", { view }, () => ({
    content: [{ type: "resource_link", uri, name: "page" }],
  }));
  registry.register("zone", { visibility: ["app"] }, () => name);
  return registry;
}

describe.each(["2026-07-28", "2025-06-18"] as const)(
  "a server at its own path, for a caller of %s",
  (revision) => {
    const listeners: HttpListener[] = [];
    let gateway: Gateway;
    let front: HttpListener;

    beforeAll(async () => {
      const entries = await Promise.all(
        ["one", "two"].map(async (name) => {
          const listener = await listenHttp(createServer(createClock(name), { name, version: "1" }), {
            port: 0,
            graceMs: 100,
          });
          listeners.push(listener);
          return [name, { url: listener.url }] as const;
        }),
      );
      gateway = await createGateway({
        mcpServers: Object.fromEntries(entries),
        junctor: { deny: ["two__zone"] },
      });
      await gateway.ready;
      front = await listenHttp(gateway.server, { port: 0, graceMs: 100, mounts: gateway.mounts });
    });
    afterAll(async () => {
      await front.close();
      await gateway.close();
      for (const listener of listeners) await listener.close();
    });

    test("has its own names and URIs, and nothing of other servers", async () => {
      await using client = await connect(`${front.url}/two`, { revision, views: true });
      const tools = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(["time"]);
      expect(tools[0]?._meta).toEqual({ ui: { resourceUri: uri }, "ui/resourceUri": uri });
      const [tool] = tools;
      if (tool === undefined) throw new Error("no tool");
      expect(await client.readView(tool)).toEqual({ uri, html: "<p>two</p>" });
      const { content } = await client.callTool("time");
      expect(content).toMatchObject([{ uri }]);
      expect((await client.listResources()).map((each) => each.uri)).toEqual(["doc://shared", uri]);
      expect((await client.readResource("doc://shared")).contents).toMatchObject([{ text: "two" }]);
      expect((await client.listPrompts()).map(({ name }) => name)).toEqual(["ask"]);
      expect((await client.getPrompt("ask")).messages).toMatchObject([{ content: { text: "ask two" } }]);
    });

    test("obeys the rules of the gateway, and does not know its other names", async () => {
      await using two = await connect(`${front.url}/two`, { revision, views: true });
      for (const name of ["zone", "two__time", "one__time", "nothing"])
        await expect(two.callTool(name, {}, { validate: false })).rejects.toThrow("Unknown tool");
      await using one = await connect(`${front.url}/one`, { revision, views: true });
      expect((await one.callTool("zone")).content).toMatchObject([{ text: "one" }]);
    });

    test("is nowhere under another name", async () => {
      await expect(connect(`${front.url}/three`, { revision })).rejects.toThrow("Nothing is at /mcp/three");
    });
  },
);
