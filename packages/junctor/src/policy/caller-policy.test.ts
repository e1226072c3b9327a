import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createCatalogOf, createSource, toListed, toTools } from "../../../../test/support/fake-source.ts";
import { systemClock } from "../../../core/src/async/clock.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { KeyConfig } from "../config/access-rows.ts";
import type { GatewayConfig } from "../config/config.ts";
import { silentLog } from "../log/log.ts";
import { type CallerPolicy, createCallerPolicy, type Unnamed } from "./caller-policy.ts";

const source = createSource("github", { tools: toTools("search", "delete") });
const servers = [source, createSource("files", { tools: toTools("read") })];
const catalog = createCatalogOf(servers);

const key = (name: string, text: string, more: Partial<KeyConfig> = {}): KeyConfig => ({
  name,
  sha256: createHash("sha256").update(text).digest("hex"),
  allow: [],
  deny: [],
  ...more,
});

function make(config: Partial<GatewayConfig> = {}, unnamed: Unnamed = "refused"): CallerPolicy {
  const whole = {
    keys: [],
    profiles: [],
    issuers: [],
    http: {},
    allow: [],
    deny: [],
    separator: "__",
    servers: [],
    disabled: [],
    ...config,
  };
  return createCallerPolicy(whole as unknown as GatewayConfig, {
    catalog,
    unnamed,
    clock: systemClock,
    log: silentLog,
    servers: () => servers,
  });
}

const toolsOf = (policy: CallerPolicy, caller?: string): readonly string[] =>
  policy.viewFor(createCallContext({ caller })).tools.map(({ name }) => name);

const everything = ["github__search", "github__delete", "files__read"];

describe("without keys", () => {
  test("everybody may come in and use what is allowed for all", () => {
    expect(make().isOpen).toBe(true);
    expect(toolsOf(make())).toEqual(everything);
    expect(toolsOf(make({ allow: ["github__*"], deny: ["*delete"] }))).toEqual(["github__search"]);
  });

  test("a caller known by other means is nobody special", () => {
    expect(toolsOf(make(), "somebody")).toEqual(everything);
  });
});

describe("with keys", () => {
  const policy = make({
    keys: [key("ann", "key of ann", { deny: ["files__*"] }), key("bob", "b0b", { allow: ["files__*"] })],
    deny: ["*delete"],
  });
  const authenticate = (header: string | undefined): unknown =>
    policy.proof.authenticate((name) => (name === "authorization" ? header : undefined));

  test.each([
    ["Bearer b0b", "bob"],
    ["bearer b0b", "bob"],
    ["BEARER   b0b  ", "bob"],
    ["Bearer key of ann", undefined],
    ["Bearer B0B", undefined],
    ["Bearer b0b,", undefined],
    ["Bearer b0b b0b", undefined],
    ["Bearerb0b", undefined],
    ["Basic b0b", undefined],
    ["b0b", undefined],
    ["Bearer ", undefined],
    ["Bearer", undefined],
    ["", undefined],
    [undefined, undefined],
    [` Bearer b0b`, undefined],
    [`Bearer ${createHash("sha256").update("b0b").digest("hex")}`, undefined],
  ])("%j is %s", (header, caller) => {
    expect(authenticate(header)).toEqual(caller === undefined ? undefined : { name: caller });
  });

  test("each sees what both the config and the key allow", () => {
    expect(toolsOf(policy, "ann")).toEqual(["github__search"]);
    expect(toolsOf(policy, "bob")).toEqual(["files__read"]);
  });

  test("what is not for a key cannot be found by it either", () => {
    const view = policy.viewFor(createCallContext({ caller: "bob" }));
    expect(view.toolClaims.get("files__read")?.server).toBe("files");
    expect(view.toolClaims.get("github__search")).toBeUndefined();
    expect(view.toolClaims.get("github__delete")).toBeUndefined();
  });

  test.each(["carol", "", "__proto__", "constructor", undefined])(
    "whose key is gone, %j, sees nothing",
    (caller) => {
      expect(toolsOf(policy, caller)).toEqual([]);
    },
  );

  test("those without a name may be trusted, and those with another may not", () => {
    const trusting = make({ keys: [key("ann", "a")], deny: ["*delete"] }, "trusted");
    expect(toolsOf(trusting)).toEqual(["github__search", "files__read"]);
    expect(toolsOf(trusting, "carol")).toEqual([]);
  });
});

describe("views", () => {
  test("are the same for a caller as long as nothing changed", () => {
    const policy = make({ keys: [key("ann", "a"), key("bob", "b")] });
    const first = policy.viewFor(createCallContext({ caller: "ann" }));
    expect(policy.viewFor(createCallContext({ caller: "ann" }))).toBe(first);
    expect(policy.viewFor(createCallContext({ caller: "nobody" })).tools).toEqual([]);
    source.listed = toListed({ tools: toTools("new") });
    catalog.outdated();
    expect(policy.viewFor(createCallContext({ caller: "ann" })).tools.map(({ name }) => name)).toContain(
      "github__new",
    );
  });
});
