import { describe, expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import { type Notification, type Request, toRequestId } from "../rpc/message.ts";
import { decideEra, type EraDecision, type EraFacts } from "./era.ts";
import { createSession } from "./session.ts";

const modern = "2026-07-28";
const keys = {
  version: "io.modelcontextprotocol/protocolVersion",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  info: "io.modelcontextprotocol/clientInfo",
  level: "io.modelcontextprotocol/logLevel",
} as const;
const envelope = { [keys.version]: modern, [keys.capabilities]: {} };
const session = createSession({
  revision: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
});

function request(method: string, meta?: object, params: object = {}): Request {
  const all = meta === undefined ? params : { ...params, _meta: meta };
  return { kind: "request", id: toRequestId(1), method, params: RawJson.fromValue(all) };
}

function notification(meta?: object): Notification {
  const params = RawJson.fromValue(meta === undefined ? {} : { _meta: meta });
  return { kind: "notification", method: "notifications/cancelled", params };
}

function http(headers: { readonly [name: string]: string }): EraFacts {
  return { headers: (name) => headers[name] };
}

/** The headers in which a modern request repeats itself. */
function mirrored(method: string, more: { readonly [name: string]: string } = {}): EraFacts {
  return http({ "mcp-protocol-version": modern, "mcp-method": method, ...more });
}

/** `modern`, `legacy`, or the code of the refusal. */
function verdict(decision: EraDecision): string | number {
  return decision.kind === "refused" ? decision.error.rpcCode : decision.kind;
}

function textOf(decision: EraDecision): string {
  return decision.kind === "refused" ? decision.error.message : decision.kind;
}

describe("a request that claims a revision, without headers", () => {
  test.each([
    ["a whole envelope", "tools/list", envelope, "modern"],
    ["server/discover", "server/discover", envelope, "modern"],
    ["no clientInfo, which is voluntary", "tools/list", envelope, "modern"],
    ["a good clientInfo", "tools/list", { ...envelope, [keys.info]: { name: "n", version: "1" } }, "modern"],
    ["a bad clientInfo", "tools/list", { ...envelope, [keys.info]: { name: "n" } }, -32602],
    ["a clientInfo that is not an object", "tools/list", { ...envelope, [keys.info]: "n" }, -32602],
    ["no capabilities", "tools/list", { [keys.version]: modern }, -32602],
    ["bad capabilities", "tools/list", { ...envelope, [keys.capabilities]: [] }, -32602],
    ["null as capabilities", "tools/list", { ...envelope, [keys.capabilities]: null }, -32602],
    ["a version that is not a string", "tools/list", { ...envelope, [keys.version]: 7 }, -32602],
    ["null as its version", "tools/list", { ...envelope, [keys.version]: null }, -32602],
    ["a good log level", "tools/list", { ...envelope, [keys.level]: "alert" }, "modern"],
    ["a bad log level", "tools/list", { ...envelope, [keys.level]: "loud" }, -32602],
    ["an unknown version", "tools/list", { ...envelope, [keys.version]: "v999.0.0" }, -32022],
    ["a legacy version", "tools/list", { ...envelope, [keys.version]: "2025-11-25" }, -32022],
    ["an empty version", "tools/list", { ...envelope, [keys.version]: "" }, -32022],
    ["initialize with a whole envelope", "initialize", envelope, "modern"],
    ["initialize with half an envelope", "initialize", { [keys.version]: modern }, "legacy"],
    ["initialize with a bad version", "initialize", { ...envelope, [keys.version]: 7 }, "legacy"],
  ])("%s", (_, method, meta, expected) => {
    expect(verdict(decideEra(request(method, meta)))).toBe(expected);
  });

  test("is judged the same in the middle of a legacy session", () => {
    expect(verdict(decideEra(request("tools/list", envelope), { session }))).toBe("modern");
    expect(verdict(decideEra(request("tools/list", { [keys.version]: modern }), { session }))).toBe(-32602);
  });

  test("names the key that is missing", () => {
    expect(textOf(decideEra(request("tools/list", { [keys.version]: modern })))).toContain(keys.capabilities);
  });

  test("gets the supported versions when its own is not served", () => {
    const decision = decideEra(request("tools/list", { ...envelope, [keys.version]: "v999" }));
    expect(decision).toMatchObject({ error: { data: { supported: [modern], requested: "v999" } } });
  });

  test("is remembered for nothing but itself", () => {
    const meta = {
      ...envelope,
      [keys.capabilities]: { roots: {} },
      [keys.info]: { name: "n", version: "1" },
      [keys.level]: "info",
    };
    expect(decideEra(request("tools/list", meta))).toEqual({
      kind: "modern",
      revision: modern,
      capabilities: { roots: {} },
      clientInfo: { name: "n", version: "1" },
      logLevel: "info",
      isBare: true,
    });
    expect(decideEra(request("tools/list", envelope))).toEqual({
      kind: "modern",
      revision: modern,
      capabilities: {},
      isBare: true,
    });
  });
});

describe("a request that claims a revision, over HTTP", () => {
  test.each([
    ["the same in its headers", mirrored("tools/list"), "tools/list", {}, "modern"],
    [
      "white space around its headers",
      http({ "mcp-protocol-version": ` ${modern} `, "mcp-method": "\ttools/list " }),
      "tools/list",
      {},
      "modern",
    ],
    ["no version header", http({ "mcp-method": "tools/list" }), "tools/list", {}, -32020],
    ["no headers at all", http({}), "tools/list", {}, -32020],
    [
      "another version in its header",
      http({ "mcp-protocol-version": "2025-11-25", "mcp-method": "tools/list" }),
      "tools/list",
      {},
      -32020,
    ],
    ["no method header", http({ "mcp-protocol-version": modern }), "tools/list", {}, -32020],
    ["another method in its header", mirrored("tools/call"), "tools/list", {}, -32020],
    ["its method in another case", mirrored("Tools/List"), "tools/list", {}, -32020],
    ["no name header", mirrored("tools/call"), "tools/call", { name: "a" }, -32020],
    ["its name", mirrored("tools/call", { "mcp-name": "a" }), "tools/call", { name: "a" }, "modern"],
    [
      "its name in base64",
      mirrored("tools/call", { "mcp-name": "=?base64?w6k=?=" }),
      "tools/call",
      { name: "é" },
      "modern",
    ],
    ["another name", mirrored("tools/call", { "mcp-name": "b" }), "tools/call", { name: "a" }, -32020],
    [
      "its name in another case",
      mirrored("tools/call", { "mcp-name": "A" }),
      "tools/call",
      { name: "a" },
      -32020,
    ],
    [
      "a name that cannot be decoded",
      mirrored("tools/call", { "mcp-name": "=?base64?YQ?=" }),
      "tools/call",
      { name: "a" },
      -32020,
    ],
    ["a prompt's name", mirrored("prompts/get", { "mcp-name": "p" }), "prompts/get", { name: "p" }, "modern"],
    [
      "a resource's URI",
      mirrored("resources/read", { "mcp-name": "x:y" }),
      "resources/read",
      { uri: "x:y" },
      "modern",
    ],
    [
      "another URI",
      mirrored("resources/read", { "mcp-name": "x:z" }),
      "resources/read",
      { uri: "x:y" },
      -32020,
    ],
    [
      "no name in its body either, for the method to refuse",
      mirrored("tools/call"),
      "tools/call",
      {},
      "modern",
    ],
    ["initialize with a whole envelope", mirrored("initialize"), "initialize", {}, "modern"],
  ])("with %s", (_, facts, method, params, expected) => {
    expect(verdict(decideEra(request(method, envelope, params), facts))).toBe(expected);
  });

  test("that disagrees with its header is a mismatch before it is an unknown version", () => {
    const message = request("tools/list", { ...envelope, [keys.version]: "v999" });
    expect(verdict(decideEra(message, mirrored("tools/list")))).toBe(-32020);
    const agreeing = http({ "mcp-protocol-version": "v999", "mcp-method": "tools/list" });
    expect(verdict(decideEra(message, agreeing))).toBe(-32022);
  });

  test("and no header is an unknown version before it is a missing header", () => {
    expect(verdict(decideEra(request("tools/list", { ...envelope, [keys.version]: "v999" }), http({})))).toBe(
      -32022,
    );
  });

  test("with half an envelope is malformed whatever its headers say", () => {
    const message = request("tools/list", { [keys.version]: modern });
    expect(verdict(decideEra(message, http({ "mcp-protocol-version": "2025-06-18" })))).toBe(-32602);
  });
});

describe("a request that claims nothing", () => {
  test.each([
    ["initialize", undefined, "legacy"],
    ["ping", undefined, "legacy"],
    ["tools/list", undefined, -32002],
    ["tools/list", { progressToken: 1 }, -32002],
    ["tools/list", { [keys.capabilities]: {}, [keys.info]: { name: "n", version: "1" } }, -32002],
    ["server/discover", undefined, -32002],
  ])("before a session: %s %j", (method, meta, expected) => {
    expect(verdict(decideEra(request(method, meta)))).toBe(expected);
  });

  test("belongs to the session", () => {
    expect(decideEra(request("tools/list"), { session })).toEqual({ kind: "legacy", session });
  });

  test.each([
    ["tools/list", modern, -32602],
    ["initialize", modern, -32020],
    ["tools/list", "v999", -32602],
    ["initialize", "2025-11-25", "legacy"],
    ["initialize", "2024-11-05", "legacy"],
    ["ping", "2025-06-18", "legacy"],
  ])("over HTTP: %s with the version header %s", (method, version, expected) => {
    const facts = http({ "mcp-protocol-version": version });
    expect(verdict(decideEra(request(method), facts))).toBe(expected);
  });

  test("but has a modern header gets the missing keys", () => {
    const decision = decideEra(request("tools/list"), { ...mirrored("tools/list"), session });
    expect(textOf(decision)).toContain(keys.version);
  });

  test.each([RawJson.fromText('{"_meta":7}'), RawJson.fromText('{"_meta":null}'), undefined])(
    "is legacy also when its _meta is not an object",
    (params) => {
      const message: Request = { ...request("tools/list"), params };
      expect(verdict(decideEra(message, { session }))).toBe("legacy");
    },
  );
});

describe("a notification", () => {
  test.each([
    ["without a claim", undefined, {}, "legacy"],
    ["with a claim", { [keys.version]: modern }, {}, "modern"],
    ["with an envelope, headers left out", envelope, http({}), "modern"],
    ["with a claim and an agreeing header", envelope, http({ "mcp-protocol-version": modern }), "modern"],
    ["with a claim and another header", envelope, http({ "mcp-protocol-version": "2025-06-18" }), -32020],
    ["with a modern header alone", undefined, http({ "mcp-protocol-version": modern }), "modern"],
    ["with a legacy header", undefined, http({ "mcp-protocol-version": "2025-06-18" }), "legacy"],
    ["with an unknown header", undefined, http({ "mcp-protocol-version": "v999" }), -32022],
    ["with an unknown claim", { [keys.version]: "v999" }, {}, -32022],
    ["with a claim that is not a string", { [keys.version]: 1 }, {}, -32602],
  ])("%s", (_, meta, facts: EraFacts, expected) => {
    expect(verdict(decideEra(notification(meta), facts))).toBe(expected);
  });
});

describe("a server of one era", () => {
  test.each([
    ["initialize", undefined, -32022],
    ["tools/list", undefined, -32602],
    ["ping", undefined, -32602],
    ["tools/list", envelope, "modern"],
  ])("only modern: %s %j", (method, meta, expected) => {
    expect(verdict(decideEra(request(method, meta), { serves: "modern" }))).toBe(expected);
  });

  test("only modern tells a legacy client what is served", () => {
    const message = request("initialize", undefined, { protocolVersion: "2025-11-25" });
    expect(decideEra(message, { serves: "modern" })).toMatchObject({
      error: { data: { supported: [modern], requested: "2025-11-25" } },
    });
  });

  test.each([
    ["initialize", envelope, "legacy"],
    ["tools/list", envelope, -32002],
    ["ping", envelope, "legacy"],
  ])("only legacy: %s %j", (method, meta, expected) => {
    expect(verdict(decideEra(request(method, meta), { serves: "legacy" }))).toBe(expected);
  });
});
