// `docker compose up` starts the engine and the replicas together. For 10 s the engine may not give leases.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { fixture } from "../bridge/support/upstream.ts";
import { freePorts } from "../support/free-ports.ts";
import { startEngine } from "./support/engine.ts";
import { createReplica } from "./support/gateway-process.ts";
import { isSkipped } from "./support/skip.ts";
import { secret } from "./support/stage.ts";

const stateful = { command: process.execPath, args: [fixture("gateway-stateful.mjs")] };

test.skipIf(isSkipped)(
  "calls to replicas that were started with their engine wait until it gives leases",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "junctor-young-"));
    const [enginePort = 0, ...ports] = await freePorts(5);
    const config = join(folder, "mcp.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { stateful }, junctor: { admin: false } }), {
      mode: 0o600,
    });
    await using engine = await startEngine(enginePort, folder);
    const trunkPorts = ports.slice(2);
    const env = { JUNCTOR_STORE: engine.url, JUNCTOR_SECRET: secret };
    const replicas = ports.slice(0, 2).map((port, index) =>
      createReplica({
        name: `r${index}`,
        port,
        trunkPort: trunkPorts[index]!,
        trunkPorts,
        folder,
        config,
        env,
        args: [],
      }),
    );
    try {
      await Promise.all(replicas.map((replica) => replica.start()));
      const calls = replicas.map(async ({ port }) => {
        const url = new URL(`http://127.0.0.1:${port}/mcp`);
        await using client = await connect(url, {
          revision: "2026-07-28",
          eras: createEraCache(),
          validate: false,
        });
        return await client.callTool("stateful__echo", { text: "hello" }, { timeoutMs: 60_000 });
      });
      const results = await Promise.all(calls);
      expect(results.map(({ isError }) => isError === true)).toEqual([false, false]);
      for (const replica of replicas) expect(replica.output()).not.toContain("gives leases again");
    } finally {
      for (const replica of replicas) await replica[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
