import { appendFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { legacyRevisions, modernRevisions } from "../../packages/core/src/mcp/revision.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { openCallFile } from "../../packages/junctor/src/once/call-file.ts";
import { KeptCalls } from "../../packages/junctor/src/once/kept-calls.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { startReplicas } from "../cluster/support/replicas.ts";
import { makeConfigFolder } from "../support/config-file.ts";
import { junctor } from "../support/junctor-bin.ts";
import { startShop } from "./support/shop.ts";

async function serve(junctorSection: object = {}) {
  const shop = await startShop();
  const gateway = await createGateway({ mcpServers: { shop: shop.entry }, junctor: junctorSection });
  const listener = await listenHttp(gateway.server, { port: 0, graceMs: 100, onWarning: () => {} });
  onTestFinished(async () => {
    await listener.close();
    await gateway.close();
    await shop[Symbol.asyncDispose]();
  });
  return { shop, url: listener.url };
}

test.each([...legacyRevisions, ...modernRevisions])(
  "in %s a retry gets the end of the first call",
  async (revision) => {
    const { shop, url } = await serve();
    const ends: unknown[] = [];
    for (let attempt = 0; attempt < 3; attempt++) {
      await using client = await connect(url, { revision });
      ends.push(await client.callTool("shop__charge", { order: "a" }, { idempotencyKey: "key-1" }));
    }
    expect(shop.charged.get("a")).toBe(1);
    expect(new Set(ends.map((end) => JSON.stringify(end))).size).toBe(1);
  },
);

test.each(["2026-07-28", "2025-11-25"] as const)(
  "the header Idempotency-Key counts in %s",
  async (revision) => {
    const { shop, url } = await serve();
    await using client = await connect(url, { revision, headers: { "idempotency-key": "key-1" } });
    await client.callTool("shop__charge", { order: "a" });
    await client.callTool("shop__charge", { order: "a" });
    await expect(client.callTool("shop__charge", { order: "b" })).rejects.toThrow("another call");
    expect([...shop.charged]).toEqual([["a", 1]]);
  },
);

test("a connection that is cut in the middle does not end a call with a key", async () => {
  const { shop, url } = await serve();
  const stop = new AbortController();
  await using client = await connect(url);
  const options = { idempotencyKey: "key-1", signal: stop.signal };
  const cut = client.callTool("shop__charge", { order: "a", waits: true }, options);
  await shop.begun("a");
  stop.abort();
  await expect(cut).rejects.toThrow("given up");
  const again = client.callTool("shop__charge", { order: "a", waits: true }, { idempotencyKey: "key-1" });
  shop.release("a");
  expect(JSON.stringify(await again)).toContain("charge 1 of a");
  expect(shop.charged.get("a")).toBe(1);
});

test("keys are not heeded where the config says so", async () => {
  const { shop, url } = await serve({ idempotency: false });
  await using client = await connect(url);
  for (let attempt = 0; attempt < 2; attempt++)
    await client.callTool("shop__charge", { order: "a" }, { idempotencyKey: "key-1" });
  expect(shop.charged.get("a")).toBe(2);
});

test("a hundred duplicates at two replicas run once, and both give the same end", async () => {
  await using shop = await startShop();
  await using both = await startReplicas(2, { mcpServers: { shop: shop.entry } });
  const clients = await Promise.all(both.replicas.map(({ url }) => connect(url)));
  const call = (at: number): Promise<unknown> =>
    clients[at % 2]!.callTool("shop__charge", { order: "a", waits: true }, { idempotencyKey: "key-1" });
  const calls = Array.from({ length: 100 }, (_, at) => call(at));
  await shop.begun("a");
  shop.release("a");
  const ends = await Promise.all(calls);
  expect(new Set(ends.map((end) => JSON.stringify(end))).size).toBe(1);
  expect(shop.charged.get("a")).toBe(1);
  await Promise.all(clients.map((client) => client.close()));
});

test("`junctor call --key` again gives the end of the first call", async () => {
  const { shop, url } = await serve();
  const args = ["call", "shop__charge", "order=a", "--key", "k-1", "--server", url];
  const first = await junctor(args);
  const again = await junctor(args);
  expect(first).toMatchObject({ code: 0, stdout: "charge 1 of a\n" });
  expect(again.stdout).toBe(first.stdout);
  expect(shop.charged.get("a")).toBe(1);
});

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "junctor-once-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a file distinguishes calls that ended from calls that only began, also after a line that was cut short", async () => {
  const path = join(makeFolder(), "calls");
  const options = { path, keepMs: 1000, maxBytes: 1000, onWarning: () => {} };
  const clock = createVirtualClock(1_000_000);
  const open = (): ReturnType<typeof openCallFile> => openCallFile({ ...options, clock });
  let file = open();
  expect(file.begin({ id: "a", fingerprint: "fa", owner: undefined })).toBeUndefined();
  expect(file.begin({ id: "b", fingerprint: "fb", owner: undefined })).toBeUndefined();
  expect(file.begin({ id: "c", fingerprint: "fc", owner: undefined })).toBeUndefined();
  await file.end("b", { kind: "dropped" });
  await file.release("c");
  appendFileSync(path, '\n["d","fd",');
  // A second gateway must not have it meanwhile.
  expect(open).toThrow("keeps its calls there");
  file[Symbol.dispose]();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  file = open();
  const begin = (id: string): unknown => file.begin({ id, fingerprint: `f${id}`, owner: undefined });
  expect(begin("a")).toEqual({ fingerprint: "fa", ended: { kind: "unknown" } });
  expect(begin("b")).toEqual({ fingerprint: "fb", ended: { kind: "dropped" } });
  expect(begin("c")).toBeUndefined();
  await clock.advance(1001);
  expect(begin("a")).toBeUndefined();
  file[Symbol.dispose]();
});

test("a call whose beginning cannot be noted is not sent", async () => {
  const calls = new KeptCalls({
    ledger: {
      begin: () => {
        throw new Error("disk full");
      },
      end: () => {},
      release: () => {},
    },
  });
  const call = { id: "a", fingerprint: "f", owner: undefined };
  await expect((async () => calls.begin(call))()).rejects.toThrow("disk full");
  expect(calls.size).toBe(0);
});

test("a file that cannot be used is a mistake of the config", async () => {
  await using folder = await makeConfigFolder();
  const path = join(folder.path, "mcp.json", "calls");
  await folder.write({});
  const made = createGateway({ mcpServers: {}, junctor: { idempotency: { file: path } } });
  await expect(made).rejects.toMatchObject({ code: "config.invalid" });
});
