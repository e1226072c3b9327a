// Long results that one replica cut and keeps, read by another.
import { expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { ToolResult } from "../../packages/core/src/mcp/types.ts";
import { startReplicas, type TestReplicas } from "./support/replicas.ts";
import { statefulServer } from "./support/servers.ts";

const rows = Array.from({ length: 2000 }, (_, row) => `row ${row + 1} of the table`);
const textOf = ({ content }: ToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");
const idIn = (result: ToolResult): string => /"id":"([^"]+)"/.exec(textOf(result))?.[1] ?? "";

const config = {
  mcpServers: { up: statefulServer },
  junctor: {
    servers: { up: { maxResultTokens: 1000 } },
    profiles: { small: { maxResultTokens: { "*": 500 } } },
  },
};

const connectAll = async ({ replicas }: TestReplicas, path = ""): Promise<readonly Client[]> => {
  const options = { revision: "2026-07-28", eras: createEraCache() } as const;
  const clients = await Promise.all(replicas.map(({ url }) => connect(url + path, options)));
  onTestFinished(async () => {
    for (const client of clients) await client.close();
  });
  return clients;
};

test.each(["", "/small"])("a cut result is read on at any replica (at /mcp%s)", async (path) => {
  await using replicas = await startReplicas(3, config);
  const clients = await connectAll(replicas, path);
  for (const client of clients) {
    const cut = await client.callTool("up__echo", { text: rows.join("\n") });
    const id = idIn(cut);
    const { uri } = cut.content.at(-1) as { readonly uri: string };
    for (const other of clients) {
      const read = await other.callTool("read_result", { id, from: 1000, lines: 1 });
      expect(textOf(read)).toContain("row 1000 of the table");
      expect(JSON.stringify(await other.readResource(uri))).toContain("row 1234 of the table");
      const missing = await other.callTool("read_result", { id: id.slice(0, -1) });
      expect(textOf(missing)).toContain("No such result is kept");
    }
  }
});

test("a result that a replica kept which is gone is not kept any more, and opens at its own path only", async () => {
  await using replicas = await startReplicas(2, config);
  const [first, second] = await connectAll(replicas);
  const [, small] = await connectAll(replicas, "/small");
  const id = idIn(await first!.callTool("up__echo", { text: rows.join("\n") }));
  expect(textOf(await small!.callTool("read_result", { id }))).toContain("No such result is kept");
  expect(textOf(await second!.callTool("read_result", { id }))).toContain("row 1 of the table");
  await first!.close();
  await replicas.replicas[0]![Symbol.asyncDispose]();
  await expect
    .poll(async () => textOf(await second!.callTool("read_result", { id })))
    .toContain("No such result is kept");
});
