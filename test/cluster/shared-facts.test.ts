import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { createMemoryClusterStore } from "../../packages/junctor/src/cluster/memory-store.ts";
import { fixture } from "../bridge/support/upstream.ts";
import { type CountingStore, withCounts } from "../support/counting-store.ts";
import { startBalancer, startReplica, type TestReplica } from "./support/replicas.ts";

const stateful = { command: process.execPath, args: [fixture("gateway-stateful.mjs")] };

interface Counted extends AsyncDisposable {
  readonly store: CountingStore;
  readonly replicas: readonly TestReplica[];
  readonly url: string;
}

/** Three replicas over a store that counts, and a balancer before them. */
async function startCounted(junctor: object): Promise<Counted> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-"));
  const store = withCounts(createMemoryClusterStore());
  const replicas: TestReplica[] = [];
  for (const number of [0, 1, 2]) {
    const listen = { kind: "socket", path: join(folder, String(number)) } as const;
    replicas.push(await startReplica({ store, config: { mcpServers: { stateful }, junctor }, listen }));
  }
  const balancer = await startBalancer(replicas.map(({ listener }) => listener.port));
  return {
    store,
    replicas,
    url: balancer.url,
    [Symbol.asyncDispose]: async () => {
      await balancer[Symbol.asyncDispose]();
      await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test("plain calls make no operation on the store, whichever replica has the server", async () => {
  await using counted = await startCounted({});
  await using client = await connect(counted.url, { revision: "2026-07-28", eras: createEraCache() });
  for (let call = 0; call < 6; call++) await client.callTool("stateful__echo", { text: "first" });
  counted.store.reset();
  for (let call = 0; call < 90; call++) await client.callTool("stateful__echo", { text: "x" });
  expect(counted.store.total).toBe(0);
});

test("a limit holds for three replicas together, with few operations on the store", async () => {
  await using counted = await startCounted({ limits: { callsPerMinute: 60 } });
  await using client = await connect(counted.url, { revision: "2026-07-28", eras: createEraCache() });
  await client.listTools();
  counted.store.reset();
  const began = performance.now();
  let allowed = 0;
  for (let call = 0; call < 100; call++) {
    const { isError, content } = await client.callTool("stateful__echo", { text: "x" });
    if (isError === true) expect(JSON.stringify(content)).toContain("No more than 60 calls a minute");
    else allowed += 1;
  }
  const cameBack = (performance.now() - began) / 1000;
  expect(allowed).toBeGreaterThan(10);
  expect(allowed).toBeLessThanOrEqual(60 + Math.ceil(cameBack));
  expect(counted.store.counts.get("take")).toBeLessThan(60);
});

test("a caller that a person revokes at one replica is revoked at all of them, and let in again", async () => {
  const sha256 = createHash("sha256").update("a key of ada").digest("hex");
  await using counted = await startCounted({ keys: { ada: { sha256 } } });
  const [first, ...others] = counted.replicas.map(({ gateway }) => gateway.controls);
  first?.revoke("ada");
  await expect.poll(() => others.map((controls) => controls.isRevoked("ada"))).toEqual([true, true]);
  others[0]?.restore("ada");
  await expect.poll(() => [first?.isRevoked("ada"), others[1]?.isRevoked("ada")]).toEqual([false, false]);
});
