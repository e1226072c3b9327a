import { describe, expect, test } from "vitest";
import { declaredExtension, extensionIds, nothingDeclared, toDeclared, withoutTasks } from "./extension.ts";
import type { ClientCapabilities } from "./types.ts";

const ui = { mimeTypes: ["text/html;profile=mcp-app"] };
const of = (extensions: unknown): ClientCapabilities => ({ extensions }) as ClientCapabilities;

describe("the extensions that pass on behalf of a caller", () => {
  test("are those from end to end, with their settings", () => {
    const capabilities = of({ [extensionIds.ui]: ui, [extensionIds.skills]: {} });
    expect(toDeclared(capabilities).extensions).toEqual({ [extensionIds.ui]: ui, [extensionIds.skills]: {} });
  });

  test.each([
    ["tasks, which each hop has for itself", extensionIds.tasks],
    ["how one hop authenticates", "io.modelcontextprotocol/oauth-client-credentials"],
    ["a server card", "io.modelcontextprotocol/server-card"],
    ["an extension that is not known", "com.example/maps"],
  ])("do not include %s", (_, id) => {
    expect(toDeclared(of({ [id]: {} }))).toBe(nothingDeclared);
  });

  test("include one that the config opened, and only if the caller declared it", () => {
    const opened = ["com.example/maps"];
    expect(toDeclared(of({ "com.example/maps": { zoom: 3 } }), opened).extensions).toEqual({
      "com.example/maps": { zoom: 3 },
    });
    expect(toDeclared(of({}), opened)).toBe(nothingDeclared);
  });

  test("have one key for the same settings, however they are written", () => {
    const one = of({ [extensionIds.ui]: { a: [1, { b: 1, c: 2 }], d: null }, [extensionIds.skills]: {} });
    const other = of({ [extensionIds.skills]: {}, [extensionIds.ui]: { d: null, a: [1, { c: 2, b: 1 }] } });
    expect(toDeclared(one).key).toBe(toDeclared(other).key);
    expect(toDeclared(of({ [extensionIds.ui]: { a: [{ b: 1 }, 1] } })).key).not.toBe(toDeclared(one).key);
  });

  test("are none where the settings are longer than is passed on", () => {
    expect(toDeclared(of({ [extensionIds.ui]: { mimeTypes: ["x".repeat(5000)] } }))).toBe(nothingDeclared);
  });

  test.each([[null], [[]], ["yes"], [true]])("are none where %j stands for the settings", (settings) => {
    expect(toDeclared(of({ [extensionIds.ui]: settings }))).toBe(nothingDeclared);
    expect(declaredExtension(of({ [extensionIds.ui]: settings }), extensionIds.ui)).toBeUndefined();
  });

  test.each([[null], ["ui"], [7]])("are none where extensions is %j", (extensions) => {
    expect(toDeclared(of(extensions))).toBe(nothingDeclared);
  });
});

test("capabilities without tasks keep the other extensions", () => {
  const capabilities = of({ [extensionIds.tasks]: {}, [extensionIds.ui]: ui });
  expect(withoutTasks(capabilities).extensions).toEqual({ [extensionIds.ui]: ui });
});
