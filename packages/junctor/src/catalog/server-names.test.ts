import { expect, test } from "vitest";
import { toServerConfig } from "../../../../test/support/fake-source.ts";
import { defaultNaming } from "../../../core/src/compose/namespace.ts";
import { createServerNames, toPublicName } from "./server-names.ts";

const long = "x".repeat(80);

test.each([
  [{ prefix: "files" }, "files__read", true],
  [{ prefix: "files" }, "file__read", false],
  [{ prefix: "files" }, "files_read", false],
  [{ prefix: "a.b" }, "a_b__read", true],
  [{ prefix: false }, "anything", true],
  [{ prefix: "files", tools: { read: { name: "get" } } }, "get", true],
  [{ prefix: "files", tools: { read: { name: "get" } } }, "read", false],
] as const)("with %j a server may own %s: %s", (config, name, isOwner) => {
  expect(createServerNames(toServerConfig("files", config), defaultNaming).mayOwn(name)).toBe(isOwner);
});

test("a server may own each name that it gives, however long", () => {
  const config = toServerConfig("files", { prefix: "p".repeat(32) });
  expect(createServerNames(config, defaultNaming).mayOwn(toPublicName(config, long, defaultNaming))).toBe(
    true,
  );
});
