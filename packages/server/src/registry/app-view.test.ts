import { describe, expect, test } from "vitest";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { connectForTest } from "../../../junctor/src/testing/connect-for-test.ts";
import { type AppViewSpec, defineView } from "./app-view.ts";
import { createRegistry } from "./registry.ts";
import { createResourceRegistry } from "./resources.ts";

const html = "<!doctype html><p>12:00</p>";

describe("a tool with a view", () => {
  test("names it in both forms, and serves the page with what it asks of the host", async () => {
    const csp = { connectDomains: ["https://api.example.com"] };
    const view = defineView({ uri: "ui://clock/face.html", html, csp, prefersBorder: true });
    const registry = createRegistry({ resources: createResourceRegistry() });
    registry.register("get-time", { view, visibility: ["model", "app"], _meta: { mine: 1 } }, () => "12:00");
    const client = await connectForTest(registry);
    const [tool] = await client.listTools();
    expect(tool?._meta).toEqual({
      mine: 1,
      ui: { resourceUri: "ui://clock/face.html", visibility: ["model", "app"] },
      "ui/resourceUri": "ui://clock/face.html",
    });
    expect(await client.listResources()).toEqual([
      {
        uri: "ui://clock/face.html",
        name: "face.html",
        mimeType: "text/html;profile=mcp-app",
        _meta: { ui: { csp, prefersBorder: true } },
      },
    ]);
    if (tool === undefined) throw new Error("no tool");
    expect(await client.readView(tool)).toEqual({
      uri: "ui://clock/face.html",
      html,
      csp,
      prefersBorder: true,
    });
    await client.close();
  });

  test("may be made for each read, and be shared by several tools", async () => {
    let reads = 0;
    const view = defineView({ uri: "ui://clock/face.html", html: async () => `<p>${++reads}</p>` });
    const registry = createRegistry();
    registry.register("one", { view }, () => "1");
    registry.register("two", { view }, () => "2");
    const other = defineView({ uri: "ui://clock/face.html", html });
    expect(() => registry.register("three", { view: other }, () => "3")).toThrow("Another view has the URI");
    const client = await connectForTest(registry);
    for (const tool of await client.listTools())
      expect((await client.readView(tool)).html).toBe(`<p>${reads}</p>`);
    await client.close();
  });

  test("is not offered by a registry without one", async () => {
    expect(createRegistry().offers(createCallContext()).serves("resources/read")).toBe(false);
  });

  test.each([
    [{ uri: "https://example.com", html }, "uri must be one such as ui://"],
    [{ uri: "ui://", html }, "uri must be one such as ui://"],
    [{ uri: "ui://a/b", html: "" }, "html must be a page"],
    [{ uri: "ui://a/b", html, csp: { connect: [] } }, "connect"],
    [{ uri: "ui://a/b", html, permissions: { camara: {} } }, "camera"],
    [{ uri: "ui://a/b", html, size: 1 }, "size"],
  ])("is refused where it is wrong: %j", (spec, reason) => {
    expect(() => defineView(spec as AppViewSpec)).toThrow(reason);
  });

  test.each([
    [{ visibility: [] }, "visibility must be"],
    [{ visibility: ["user"] }, "visibility must be"],
    [{ view: { uri: "ui://a/b" } }, "made by defineView"],
  ])("is refused by the registry where it is wrong: %j", (spec, reason) => {
    expect(() => createRegistry().register("tool", spec as never, () => "")).toThrow(reason);
  });
});
