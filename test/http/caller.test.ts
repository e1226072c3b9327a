import { describe, expect, test } from "vitest";
import type { Caller } from "../../packages/core/src/mcp/session.ts";
import { listen } from "../support/http-tools.ts";
import { connectLegacy, legacyCall, modern, modernCall, modernPost } from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";

const reader: Caller = { name: "corp:1", issuer: "https://id.example.com", subject: "1", scopes: ["read"] };

/** A caller says in a header which of its two tokens it has. */
const authenticate = (header: (name: string) => string | undefined): Caller | string | undefined => {
  const key = header("authorization");
  if (key === "plain") return "plain";
  if (key === "read") return reader;
  return key === "write" ? { ...reader, scopes: ["read", "write"] } : undefined;
};

describe("the caller that a listener authenticated", () => {
  test("is in the context of a modern call, whole and by its name", async () => {
    await using at = await listen({ authenticate });
    const seen: unknown[] = [];
    at.registry.register("who", {}, (_, { caller, identity }) => {
      seen.push([caller, identity]);
      return "ok";
    });
    for (const authorization of ["read", "plain"])
      expect((await exchange(at.port, modernPost(modernCall("who"), { authorization }))).status).toBe(200);
    expect(seen).toEqual([
      ["corp:1", reader],
      ["plain", { name: "plain" }],
    ]);
  });

  test("is the one of each request, also in one legacy session", async () => {
    await using at = await listen({ authenticate });
    const seen: unknown[] = [];
    at.registry.register("who", {}, (_, { identity }) => {
      seen.push(identity?.scopes);
      return "ok";
    });
    using wire = await connectLegacy(at.port, "2025-11-25", {}, { authorization: "read" });
    for (const [id, authorization] of ["read", "write", "read"].entries()) {
      wire.headers["authorization"] = authorization;
      await wire.ask(legacyCall(id + 10, "who"));
    }
    expect(seen).toEqual([["read"], ["read", "write"], ["read"]]);
  });
});

test("the host and the origin of the public URL are served, with and without their port", async () => {
  await using at = await listen({ publicUrl: "https://mcp.example.com/mcp" });
  const list = modernPost(modern("tools/list"));
  const statusOf = async (host: string, origin = ""): Promise<number> => {
    const given: readonly (readonly [string, string])[] = origin === "" ? [] : [["origin", origin]];
    return (await exchange(at.port, { ...list, host, headers: [...list.headers!, ...given] })).status;
  };
  expect(await statusOf("mcp.example.com", "https://mcp.example.com")).toBe(200);
  expect(await statusOf("mcp.example.com:443")).toBe(200);
  expect(await statusOf("mcp.example.com:80")).toBe(403);
  expect(await statusOf("mcp.example.com", "https://other.example.com")).toBe(403);
  expect(await statusOf("other.example.com")).toBe(403);
});
