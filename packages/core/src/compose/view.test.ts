import { describe, expect, test } from "vitest";
import { callerNamed, createCatalogOf, createSource, toTools } from "../../../../test/support/fake-source.ts";
import { createGlobs } from "../../../server/src/middleware/allow-list.ts";
import { createView, type View } from "./view.ts";

const catalog = createCatalogOf([
  createSource("files", {
    tools: toTools("read", "delete"),
    prompts: [{ name: "explain" }],
    resources: [
      { name: "readme", uri: "file:///docs/readme" },
      { name: "passwords", uri: "file:///etc/passwords" },
    ],
    templates: [
      { name: "any", uriTemplate: "file:///{+path}" },
      { name: "broken", uriTemplate: "file:///{unclosed" },
    ],
  }),
  createSource("git", {
    tools: toTools("log"),
    resources: [{ name: "head", uri: "git://head" }],
    templates: [{ name: "commit", uriTemplate: "git://commit/{id}" }],
  }),
]);

const viewOf = (allow?: readonly string[], deny: readonly string[] = []): View =>
  createView(catalog.snapshotFor(callerNamed()), createGlobs(allow, deny), {
    separator: "__",
    showsViews: false,
  });

describe("without limits", () => {
  const view = viewOf();

  test("everything is listed, and everything listed has an owner", () => {
    expect(view.tools.map(({ name }) => name)).toEqual(["files__read", "files__delete", "git__log"]);
    for (const { name } of view.tools) expect(view.toolClaims.get(name)).toBeDefined();
    expect(view.toolClaims.get("files__read")).toMatchObject({ server: "files", ownName: "read" });
    expect(view.promptClaims.get("files__explain")).toMatchObject({ server: "files", ownName: "explain" });
    expect(view.resourceOwner("git://head")?.server).toBe("git");
    expect(view.templateOwner("git://commit/{id}")?.server).toBe("git");
  });

  test("a resource that fits a template belongs to whose template it is", () => {
    expect(view.resourceOwner("git://commit/abc")?.server).toBe("git");
    expect(view.resourceOwner("file:///a/b/c")?.server).toBe("files");
    expect(view.resourceOwner("http://x")).toBeUndefined();
  });

  test.each([
    "read",
    "files.read",
    "FILES__READ",
    "files__Read",
    "files__read ",
    "files___read",
    "__proto__",
    "constructor",
    "",
  ])("a tool is not found as %j", (name) => {
    expect(view.toolClaims.get(name)).toBeUndefined();
    expect(view.promptClaims.get(name)).toBeUndefined();
  });

  test("servers that list URIs of a scheme may know one that is not listed", () => {
    expect(view.likelyOwners("git://elsewhere")).toEqual(["git"]);
    expect(view.likelyOwners("http://x")).toEqual([]);
    expect(view.likelyOwners("no scheme")).toEqual([]);
  });

  test("the lists cannot be changed by their readers", () => {
    expect(Object.isFrozen(view.tools)).toBe(true);
    expect(Object.isFrozen(view.resources)).toBe(true);
  });
});

describe("what is not listed cannot be found", () => {
  test("tools and prompts by their names", () => {
    const view = viewOf(undefined, ["*delete*", "files__explain"]);
    expect(view.tools.map(({ name }) => name)).toEqual(["files__read", "git__log"]);
    expect(view.toolClaims.get("files__delete")).toBeUndefined();
    expect(view.prompts).toEqual([]);
    expect(view.promptClaims.get("files__explain")).toBeUndefined();
  });

  test("resources by their server and URI", () => {
    const view = viewOf(["git__*"]);
    expect(view.resources.map(({ uri }) => uri)).toEqual(["git://head"]);
    expect(view.resourceOwner("file:///docs/readme")).toBeUndefined();
    expect(view.templateOwner("file:///{+path}")).toBeUndefined();
    expect(view.likelyOwners("file:///docs/readme")).toEqual([]);
  });

  test("a resource that is denied, also by a template that it fits, or by its scheme", () => {
    const view = viewOf(undefined, ["files__file:///etc/*"]);
    expect(view.resources.map(({ uri }) => uri)).not.toContain("file:///etc/passwords");
    expect(view.resourceOwner("file:///etc/passwords")).toBeUndefined();
    expect(view.resourceOwner("file:///etc/shadow")).toBeUndefined();
    expect(view.likelyOwners("file:///etc/shadow")).toEqual([]);
    expect(view.resourceOwner("file:///docs/other")?.server).toBe("files");
  });

  test.each([
    "file:///%65tc/passwords",
    "file:///etc%2Fpasswords",
    "file:///%2565tc/passwords",
    "file:///docs/../etc/passwords",
    "file:///docs/%2e%2e/etc/passwords",
    "file:///docs/..%2Fetc/passwords",
    "file:///docs\\..\\etc/passwords",
    "file:///./etc/passwords",
    "file:////etc/passwords",
    "file:///x/..//etc//passwords",
  ])("a resource that is denied, written as %s", (uri) => {
    const denying = viewOf(undefined, ["files__file:///etc/*"]);
    expect(denying.resourceOwner(uri)).toBeUndefined();
    expect(denying.likelyOwners(uri)).toEqual([]);
    const allowing = viewOf(["files__file:///docs/*", "files__file:///{+path}"]);
    expect(allowing.resourceOwner(uri)).toBeUndefined();
    expect(allowing.likelyOwners(uri)).toEqual([]);
  });

  test.each([
    "file:///docs/a%20b",
    "file:///docs/100%25",
    "file:///docs/a/./b",
    "file:///docs/x/../y",
    "file:///docs/.git",
  ])("but not one that is allowed, such as %s", (uri) => {
    const view = viewOf(["files__file:///docs/*", "files__file:///{+path}"]);
    expect(view.resourceOwner(uri) ?? view.likelyOwners(uri)[0]).toBeDefined();
  });

  test("anything, when nothing is allowed", () => {
    const view = viewOf([]);
    expect([view.tools, view.prompts, view.resources, view.templates]).toEqual([[], [], [], []]);
    expect(view.likelyOwners("git://head")).toEqual([]);
  });
});

describe("a URI of several servers", () => {
  const uri = "doc://handbook";
  const uriTemplate = "doc://{+page}";
  const common = { resources: [{ name: "handbook", uri }], templates: [{ name: "page", uriTemplate }] };
  const shared = createCatalogOf([createSource("first", common), createSource("second", common)]);
  const sharedView = (allow?: readonly string[], deny: readonly string[] = []): View =>
    createView(shared.snapshotFor(callerNamed()), createGlobs(allow, deny), {
      separator: "__",
      showsViews: false,
    });

  test.each([
    ["the first in the config, for callers that may use both", undefined, "first"],
    ["the second, for callers that may use only that", ["second__*"], "second"],
    ["no server, for callers that may use neither", ["third__*"], undefined],
  ])("is that of %s", (_whose, allow, server) => {
    const view = sharedView(allow);
    expect(view.resources).toHaveLength(server === undefined ? 0 : 1);
    expect(view.templates).toHaveLength(server === undefined ? 0 : 1);
    expect(view.resourceOwner(uri)?.server).toBe(server);
    expect(view.templateOwner(uriTemplate)?.server).toBe(server);
    expect(view.resourceOwner("doc://other")?.server).toBe(server);
  });

  test("is that of another where only this one is kept from a caller", () => {
    const view = sharedView(undefined, ["first__doc://secret"]);
    expect(view.resourceOwner("doc://secret")?.server).toBe("second");
    expect(view.resourceOwner(uri)?.server).toBe("first");
  });

  test("changes for a caller when that of the server changes from which the caller has it", () => {
    expect([sharedView().mayHear("first", uri), sharedView().mayHear("second", uri)]).toEqual([true, false]);
    const view = sharedView(["second__*"]);
    expect([view.mayHear("first", uri), view.mayHear("second", uri)]).toEqual([false, true]);
  });
});
