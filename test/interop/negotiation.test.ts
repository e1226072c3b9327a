import { Client as ClientV2, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterEach, describe, expect, test } from "vitest";
import { demoServer, everythingServer, type StdioServer } from "./sdk-client.ts";

// The official clients with their own transports and defaults, untouched: how they find out whom they talk to.

const info = { name: "negotiator", version: "1.0.0" };
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()));
});

async function connectV1(server: StdioServer): Promise<ClientV1> {
  const client = new ClientV1(info);
  open.push(client);
  await client.connect(new StdioV1({ ...server, stderr: "ignore" }));
  return client;
}

async function connectV2(
  server: StdioServer,
  mode?: NonNullable<ClientOptions["versionNegotiation"]>["mode"],
): Promise<ClientV2> {
  const client = new ClientV2(info, mode === undefined ? {} : { versionNegotiation: { mode } });
  open.push(client);
  await client.connect(new StdioV2({ ...server, stderr: "ignore" }));
  return client;
}

describe.each([
  ["our toolkit", everythingServer()],
  ["junctor serve --stdio", demoServer],
])("with %s", (_name, server) => {
  test("SDK v1 connects and calls", async () => {
    const client = await connectV1(server);
    expect(await client.callTool({ name: "echo", arguments: { message: "hi" } })).toMatchObject({
      content: [{ text: "hi" }],
    });
  });

  test("SDK v2 shakes hands in the newest revision that has a handshake, unless told otherwise", async () => {
    const client = await connectV2(server);
    expect(client.getProtocolEra()).toBe("legacy");
    expect(client.getNegotiatedProtocolVersion()).toBe("2025-11-25");
  });

  test("SDK v2 finds the modern revision when it probes", async () => {
    const client = await connectV2(server, "auto");
    expect(client.getProtocolEra()).toBe("modern");
    expect(client.getDiscoverResult()).toMatchObject({ supportedVersions: ["2026-07-28"] });
    expect(await client.callTool({ name: "echo", arguments: { message: "hi" } })).toMatchObject({
      content: [{ text: "hi" }],
    });
  });

  test("SDK v2 gets the modern revision when it insists on it", async () => {
    const client = await connectV2(server, { pin: "2026-07-28" });
    expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
  });
});

describe("with a server of one era", () => {
  test("SDK v2 falls back to the handshake when the server is legacy", async () => {
    const client = await connectV2(everythingServer("--serves", "legacy"), "auto");
    expect(client.getProtocolEra()).toBe("legacy");
    expect((await client.listTools()).tools.length).toBeGreaterThan(5);
  });

  test("SDK v2 that insists on the modern revision is refused by a legacy server", async () => {
    const connecting = connectV2(everythingServer("--serves", "legacy"), { pin: "2026-07-28" });
    await expect(connecting).rejects.toMatchObject({ code: "ERA_NEGOTIATION_FAILED" });
  });

  test("SDK v2 that probes finds a server that is modern only", async () => {
    const client = await connectV2(everythingServer("--serves", "modern"), "auto");
    expect(client.getProtocolEra()).toBe("modern");
  });

  test.each([
    ["SDK v1", connectV1],
    ["SDK v2", connectV2],
  ])("%s that knows only the handshake is told what a modern server speaks", async (_name, connect) => {
    await expect(connect(everythingServer("--serves", "modern"))).rejects.toThrow("2026-07-28");
  });
});
