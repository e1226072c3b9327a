// The second start of a gateway on stdio with a server that never lists: {calc, hang} of the findings, in a process as clients start it.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { bin } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-second-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const quick = fileURLToPath(new URL("../fixtures/children/quick.mjs", import.meta.url));
const server = (...args: readonly string[]): object => ({
  command: process.execPath,
  args: [quick, ...args],
});

/** Starts a gateway with a cache of its own and has it list once. Resolves with the names, and how long that took in all. */
function gatewayOf(name: string, mcpServers: object) {
  const own = join(folder, name);
  mkdirSync(own);
  const config = join(own, "mcp.json");
  // Longer than a test may take: a list that waited for the server would not end in time.
  writeFileSync(config, JSON.stringify({ mcpServers, junctor: { firstListMs: 600_000 } }), { mode: 0o600 });
  const start = () =>
    connect({
      command: process.execPath,
      args: [bin, "serve", "--stdio", "--config", config],
      env: { XDG_CACHE_HOME: join(own, "cache"), XDG_STATE_HOME: join(own, "state") },
    });
  return {
    /** Lists, and leaves after as long as the list takes, or without it. */
    leave: async (): Promise<void> => {
      const client = await start();
      client.listTools().catch(() => {}); // It ends with the client.
      await client.close();
    },
    list: async (): Promise<{ readonly names: readonly string[]; readonly ms: number }> => {
      const since = performance.now();
      const client = await start();
      const names = (await client.listTools()).map(({ name }) => name);
      const ms = performance.now() - since;
      await client.close();
      return { names, ms };
    },
  };
}

test("lists without the server that never answered at the first start, as soon as a gateway that does not have it", async () => {
  const alone = gatewayOf("alone", { calc: server() });
  const both = gatewayOf("both", { calc: server(), hang: server("--deaf") });
  expect((await alone.list()).names).toEqual(["calc__echo"]);
  await both.leave();
  const times = { alone: [] as number[], both: [] as number[] };
  // In turns, so that what else the machine does slows both; the best of each has had the least of it.
  for (let round = 0; round < 3; round++) {
    times.alone.push((await alone.list()).ms);
    const { names, ms } = await both.list();
    expect(names).toEqual(["calc__echo"]);
    times.both.push(ms);
  }
  expect(Math.min(...times.both) / Math.min(...times.alone)).toBeLessThan(2.5);
});
