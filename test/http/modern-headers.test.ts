import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { encodeHeaderValue } from "../../packages/core/src/mcp/mirrored-headers.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { modern, modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, type RawRequest, RawSocket } from "../support/raw-http.ts";
import type { Frame } from "../support/wire-schema.ts";

let at: Listening;
let socket: RawSocket;
beforeAll(async () => {
  at = await listen();
  socket = new RawSocket(at.port);
});
afterAll(async () => {
  socket[Symbol.dispose]();
  await at[Symbol.asyncDispose]();
});

/** All requests of one test file share a socket: what one says must not stick to it. */
function send(request: RawRequest): Promise<RawReply> {
  return socket.send(request).complete;
}

const base64 = (text: string): string => `=?base64?${Buffer.from(text).toString("base64")}?=`;

function codeOf(reply: RawReply): number | undefined {
  return (reply.json as { readonly error?: { readonly code: number } }).error?.code;
}

describe("Mcp-Name", () => {
  const named: readonly [string, Frame][] = [
    ["tools/call", modernCall("echo", { message: "hi" })],
    ["prompts/get", modern("prompts/get", { name: "hello" })],
    ["resources/read", modern("resources/read", { uri: "note://today" })],
  ];

  describe.each(named)("on %s", (_, message) => {
    const { name, uri } = message.params as { readonly name?: string; readonly uri?: string };
    const value = name ?? uri!;

    test.each([
      ["as it is", value],
      ["with white space around it", `  ${value}\t`],
      ["in base64", base64(value)],
    ])("is accepted %s", async (_, header) => {
      const reply = await send(modernPost(message, { "mcp-name": header }));
      expect(reply.status).toBe(200);
      expect(codeOf(reply)).toBeUndefined();
    });

    test.each([
      ["missing", undefined],
      ["empty", ""],
      ["another", `${value}x`],
      ["in another case", value.toUpperCase()],
      ["base64 of another", base64(`${value}x`)],
      [
        "base64 without its padding",
        base64(value)
          .replace(/=+\?=$/, "?=")
          .replace("?=", "x?="),
      ],
      ["base64 of no alphabet", "=?base64?***?="],
      ["base64 of what is not UTF-8", `=?base64?${Buffer.from([0xff, 0xfe]).toString("base64")}?=`],
      ["marked in another case", base64(value).replace("base64", "BASE64")],
      ["named twice", `${value}, ${value}`],
    ])("is refused when it is %s", async (_, header) => {
      const reply = await send(modernPost(message, { "mcp-name": header }));
      expect([reply.status, codeOf(reply)]).toEqual([400, -32020]);
      expect(reply.json).toMatchObject({ id: 1 });
    });
  });

  test("is accepted for every name when it was encoded, and refused when one byte of it changed", async () => {
    const name = fc.oneof(
      fc.string({ minLength: 1, maxLength: 20 }),
      fc.string({ unit: "binary", minLength: 1, maxLength: 20 }),
      fc.constantFrom(
        " leading",
        "trailing ",
        "tab\tinside",
        "=?base64?aGk=?=",
        "naïve",
        "日本",
        "\u{1f98a}",
      ),
    );
    // Half a surrogate pair has no UTF-8, so it cannot be in a body either.
    const wellFormed = name.filter((text) => Buffer.from(text).toString() === text);
    const mutation = fc.tuple(fc.nat(), fc.integer({ min: 0x21, max: 0x7e }));
    await fc.assert(
      fc.asyncProperty(wellFormed, mutation, async (text, [place, byte]) => {
        const message = modernCall(text);
        const header = encodeHeaderValue(text);
        const ok = await send(modernPost(message, { "mcp-name": header }));
        expect([text, codeOf(ok)]).toEqual([text, -32602]); // It passed; there is only no such tool.
        const index = place % header.length;
        const mutated = header.slice(0, index) + String.fromCharCode(byte) + header.slice(index + 1);
        if (mutated === header || mutated.trim() === header.trim()) return;
        const bad = await send(modernPost(message, { "mcp-name": mutated }));
        expect([mutated, bad.status, codeOf(bad)]).toEqual([mutated, 400, -32020]);
      }),
      { numRuns: 100 },
    );
  });

  test("that is not encoded as it must be is refused, not guessed at", async () => {
    const bytes = Buffer.from("naïve").toString("latin1"); // Raw UTF-8, as a careless client sends it.
    const reply = await send(modernPost(modernCall("naïve"), { "mcp-name": bytes }));
    expect([reply.status, codeOf(reply)]).toEqual([400, -32020]);
  });

  test("header names are taken in any case", async () => {
    const request = modernPost(modernCall("echo", { message: "hi" }));
    const shouting = request.headers!.map(([name, value]) => [name.toUpperCase(), value] as const);
    expect((await send({ ...request, headers: shouting })).status).toBe(200);
  });
});

describe("Mcp-Param-*", () => {
  const deploy = (args: object, headers: { readonly [name: string]: string }): Promise<RawReply> =>
    send(modernPost(modernCall("deploy", args), headers));

  test.each<[string, object, { readonly [name: string]: string }]>([
    ["a string", { region: "eu" }, { "mcp-param-region": "eu" }],
    ["a string with white space around it", { region: "eu" }, { "Mcp-Param-Region": "  eu " }],
    ["a string in base64", { region: "Zürich" }, { "mcp-param-region": base64("Zürich") }],
    [
      "a string that looks encoded",
      { region: "=?base64?x?=" },
      { "mcp-param-region": base64("=?base64?x?=") },
    ],
    ["an empty string", { region: "" }, { "mcp-param-region": "" }],
    ["an empty string in base64", { region: "" }, { "mcp-param-region": "=?base64??=" }],
    ["an integer", { level: 42 }, { "mcp-param-level": "42" }],
    ["an integer with a fraction of nothing", { level: 42 }, { "mcp-param-level": "42.0" }],
    ["a negative integer", { level: -1 }, { "mcp-param-level": "-1" }],
    ["a boolean", { isDry: true }, { "mcp-param-dry": "true" }],
    ["nothing where there is nothing", {}, {}],
    ["a header for a value that is not there", {}, { "mcp-param-region": "eu" }],
    ["a header nobody asked for", { region: "eu" }, { "mcp-param-region": "eu", "mcp-param-other": "x" }],
  ])("accepts %s", async (_, args, headers) => {
    const reply = await deploy(args, headers);
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ result: { content: [{ text: JSON.stringify(args) }] } });
  });

  test("does not expect a header for null", async () => {
    const reply = await deploy({ region: null }, {});
    expect([reply.status, codeOf(reply)]).toEqual([200, undefined]);
  });

  test.each<[string, object, { readonly [name: string]: string }]>([
    ["no header", { region: "eu" }, {}],
    ["another string", { region: "eu" }, { "mcp-param-region": "us" }],
    ["another case", { region: "eu" }, { "mcp-param-region": "EU" }],
    ["an integer in hexadecimal", { level: 42 }, { "mcp-param-level": "0x2a" }],
    ["an integer with an exponent", { level: 100 }, { "mcp-param-level": "1e2" }],
    ["an integer with a plus", { level: 42 }, { "mcp-param-level": "+42" }],
    ["no integer at all", { level: 0 }, { "mcp-param-level": "" }],
    ["another integer", { level: 42 }, { "mcp-param-level": "43" }],
    ["a boolean in another case", { isDry: true }, { "mcp-param-dry": "True" }],
    ["a boolean as a number", { isDry: true }, { "mcp-param-dry": "1" }],
    ["broken base64", { region: "eu" }, { "mcp-param-region": "=?base64?%%%?=" }],
    [
      "one right and one wrong",
      { region: "eu", level: 1 },
      { "mcp-param-region": "eu", "mcp-param-level": "2" },
    ],
  ])("refuses %s", async (_, args, headers) => {
    const reply = await deploy(args, headers);
    expect([reply.status, codeOf(reply)]).toEqual([400, -32020]);
  });

  test("is not asked of legacy clients", async () => {
    const begun = await exchange(at.port, {
      ...modernPost(modern("x")),
      headers: [["content-type", "application/json"]],
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
      }),
    });
    const call = {
      jsonrpc: "2.0",
      id: 2,
      method: "tools/call",
      params: { name: "deploy", arguments: { region: "eu" } },
    };
    const reply = await exchange(at.port, {
      headers: [
        ["content-type", "application/json"],
        ["mcp-session-id", begun.headers["mcp-session-id"]!],
      ],
      body: JSON.stringify(call),
    });
    expect(reply.status).toBe(200);
  });
});
