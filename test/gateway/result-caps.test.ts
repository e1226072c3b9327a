// Caps on results by profile, by server and by tool, at every path.
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { RunningGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";

const table = {
  type: "object",
  properties: { rows: { type: "array", items: { type: "string" } } },
  required: ["rows"],
} as const;
const rows = Array.from({ length: 2000 }, (_, row) => `row ${row + 1} of the table`);

function createLocal(): Registry {
  const registry = createRegistry();
  for (const name of ["long", "longer"])
    registry.register(name, { description: "Gives a long text." }, () => rows.join("\n"));
  registry.register("table", { description: "Gives a table.", output: table }, () => ({ rows }));
  registry.register("short", { description: "Gives little." }, () => "little");
  return registry;
}

const configOf = (servers: object, junctor: object = {}): object => ({
  mcpServers: { alpha: { command: "not-started" }, beta: { command: "not-started" } },
  junctor: { servers, ...junctor },
});

async function start(config: object): Promise<RunningGateway> {
  const gateway = await startGateway(parseConfigValue(config, { file: "test", env: {} }), {
    local: { alpha: createLocal(), beta: createLocal() },
  });
  await gateway.ready;
  return gateway;
}

const textOf = ({ content }: ToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
/** About how many tokens a result is, or that it is whole. */
const sizeOf = async (client: Client, tool: string): Promise<number | "whole"> => {
  const text = textOf(await client.callTool(tool));
  return text === rows.join("\n") ? "whole" : Math.round(text.length / 4.4 / 100) * 100;
};
const idIn = (text: string): string => /"id":"([^"]+)"/.exec(text)?.[1] ?? "";

describe.each(["2026-07-28", "2025-11-25"] as const)("over %s", (revision) => {
  test("a server's cap holds at the gateway, at its own path and in profiles, unless these say otherwise", async () => {
    await using gateway = await start(
      configOf(
        { alpha: { maxResultTokens: { longer: 4000, "*": 1000 } } },
        {
          profiles: {
            plain: {},
            renaming: { rename: { alpha__long: "short_name" } },
            own: { maxResultTokens: { alpha__long: 2000 } },
            finding: { tools: "search" },
          },
        },
      ),
    );
    await using client = await connect({ server: gateway.server }, { revision });
    expect(await sizeOf(client, "alpha__long")).toBe(900);
    expect(await sizeOf(client, "alpha__longer")).toBe(3900);
    expect(await sizeOf(client, "beta__long")).toBe("whole");
    expect(textOf(await client.callTool("alpha__short"))).toBe("little");
    await using alone = await connect({ server: gateway.serverAt("alpha")! }, { revision });
    expect(await sizeOf(alone, "long")).toBe(900);
    const cut = await alone.callTool("long");
    const id = idIn(textOf(cut));
    expect(textOf(await alone.callTool("read_result", { id, from: 1000, lines: 1 }))).toContain(
      "row 1000 of",
    );
    const { uri } = cut.content.at(-1) as { readonly uri: string };
    expect(JSON.stringify(await alone.readResource(uri))).toContain("row 1234 of");
    // What is kept at one path does not open at another.
    expect((await client.callTool("read_result", { id })).isError).toBe(true);
    await using renaming = await connect({ server: gateway.serverAt("renaming")! }, { revision });
    expect(await sizeOf(renaming, "short_name")).toBe(900);
    await using own = await connect({ server: gateway.serverAt("own")! }, { revision });
    expect(await sizeOf(own, "alpha__long")).toBe(1900);
    expect(await sizeOf(own, "alpha__longer")).toBe(3900);
    await using finding = await connect({ server: gateway.serverAt("finding")! }, { revision });
    expect((await finding.listTools()).map(({ name }) => name)).toContain("read_result");
    const found = textOf(await finding.callTool("call_tool", { name: "alpha__long" }));
    expect(textOf(await finding.callTool("read_result", { id: idIn(found), from: 7, lines: 1 }))).toContain(
      "row 7 of",
    );
  });

  test("tools with a cap list no output schema, and others keep it", async () => {
    await using gateway = await start(configOf({ alpha: { maxResultTokens: 1000 } }));
    await using client = await connect({ server: gateway.server }, { revision });
    const tools = new Map((await client.listTools()).map((tool) => [tool.name, tool]));
    expect(tools.get("alpha__table")).not.toHaveProperty("outputSchema");
    expect(tools.get("beta__table")).toHaveProperty("outputSchema");
    expect(await client.callTool("alpha__table")).not.toHaveProperty("structuredContent");
    expect(await client.callTool("beta__table")).toMatchObject({ structuredContent: { rows } });
  });
});

test("an edit of the config sets a cap and takes it away, for a client that stays", async () => {
  await using gateway = await start(configOf({}));
  await using client = await connect({ server: gateway.server });
  await using alone = await connect({ server: gateway.serverAt("alpha")! });
  const names = async (): Promise<readonly string[]> => (await client.listTools()).map(({ name }) => name);
  expect(await sizeOf(client, "alpha__long")).toBe("whole");
  expect(await names()).not.toContain("read_result");
  await gateway.update(configOf({ alpha: { maxResultTokens: 1000 } }));
  expect(await sizeOf(client, "alpha__long")).toBe(900);
  expect(await sizeOf(alone, "long")).toBe(900);
  await expect.poll(names).toContain("read_result");
  await gateway.update(configOf({}));
  expect(await sizeOf(client, "alpha__long")).toBe("whole");
  expect(await sizeOf(alone, "long")).toBe("whole");
  await expect.poll(names).not.toContain("read_result");
});

test("callers cannot read each other's results at the gateway, by guessing either", async () => {
  const sha256 = (name: string): string => createHash("sha256").update(name.repeat(8)).digest("hex");
  const keys = { ada: { sha256: sha256("ada") }, bob: { sha256: sha256("bob") } };
  await using gateway = await start(configOf({ alpha: { maxResultTokens: 1000 } }, { keys }));
  await using ada = await connect({ server: gateway.server, caller: "ada" });
  await using bob = await connect({ server: gateway.server, caller: "bob" });
  const cut = await ada.callTool("alpha__long");
  const id = idIn(textOf(cut));
  const { uri } = cut.content.at(-1) as { readonly uri: string };
  expect(textOf(await ada.callTool("read_result", { id }))).toContain("row 1 of");
  const guesses = [id, `${id} `, id.toLowerCase(), id.slice(0, -1), "", "__proto__", "../", uri];
  for (const guess of guesses) {
    expect((await bob.callTool("read_result", { id: guess })).isError).toBe(true);
    await expect(bob.readResource(`junctor://result/${guess}`)).rejects.toThrow("not found");
  }
  for (const spelling of [uri, uri.toUpperCase(), uri.replace("junctor:", "JUNCTOR:"), `${uri}?`, `${uri}/`])
    await expect(bob.readResource(spelling)).rejects.toThrow(/not found|Invalid/i);
});
