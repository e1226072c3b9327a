import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectRedisStore } from "../../packages/junctor/src/cluster/redis-store.ts";
import type { ClusterStore } from "../../packages/junctor/src/cluster/store.ts";
import { freePort } from "../support/free-ports.ts";
import { type Engine, startEngine } from "./support/engine.ts";
import { startReplica, type TestReplica } from "./support/replicas.ts";
import { isSkipped } from "./support/skip.ts";
import { secret } from "./support/stage.ts";

const key = "the-key-of-the-caller-ada";
const config = {
  mcpServers: {},
  junctor: { keys: { ada: { sha256: createHash("sha256").update(key).digest("hex") } } },
};
const farAhead = Date.now() + 86_400_000;
const slots = Array.from({ length: 64 }, (_, slot) => `junctor:revoked:${slot}`);

describe.skipIf(isSkipped)("a program that may write to the engine and lacks the secret", () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-forged-"));
  let engine: Engine;
  let intruder: Intruder;
  let stores: readonly ClusterStore[] = [];
  let replicas: readonly TestReplica[] = [];

  beforeAll(async () => {
    engine = await startEngine(await freePort(), folder);
    intruder = await connectIntruder(engine.url);
    const connect = () => connectRedisStore({ url: engine.url, secrets: [secret] });
    stores = await Promise.all([connect(), connect()]);
    const start = (store: ClusterStore, number: number) =>
      startReplica({ store, config, listen: { kind: "socket", path: join(folder, String(number)) } });
    replicas = await Promise.all(stores.map(start));
  });
  afterAll(async () => {
    await intruder.close();
    for (const one of [...replicas, ...stores, engine]) await one[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const statuses = (): Promise<readonly number[]> =>
    Promise.all(
      replicas.map(async ({ url }) => {
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        return (await fetch(url, { method: "POST", headers, body: "{}" })).status;
      }),
    );
  const areRevoked = (caller: string): readonly boolean[] =>
    replicas.map(({ gateway }) => gateway.controls.isRevoked(caller));
  /** Has the first replica revoke the caller, and waits until the others know it. */
  async function revoke(caller: string): Promise<void> {
    replicas[0]?.gateway.controls.revoke(caller);
    await expect.poll(() => areRevoked(caller)).toEqual([true, true]);
  }
  /** News comes in order, so that of the intruder was heard when a later one was. */
  let fences = 0;
  const untilHeard = (): Promise<void> => revoke(`fence ${fences++}`);
  /** Each replica looks every 3 s whether the store has what it knows. */
  const untilWritten = async (changed: string): Promise<void> =>
    await expect.poll(() => intruder.run("GET", "junctor:revoked")).not.toBe(changed);

  test("does not restore a caller by news", async () => {
    await revoke("ada");
    const news = JSON.stringify({ kind: "revocation", caller: "ada", isRevoked: false, at: farAhead });
    for (const forged of [news, `${"A".repeat(43)}.${news}`, `.${news}`, "", "x".repeat(10_000)])
      expect(await intruder.run("PUBLISH", "junctor:news", forged)).toBe(3);
    await untilHeard();
    expect(areRevoked("ada")).toEqual([true, true]);
    expect(await statuses()).toEqual([401, 401]);
  });

  test("does not restore a caller by values", async () => {
    await revoke("ada");
    for (const slot of slots) await intruder.run("SET", slot, JSON.stringify({ ada: [0, farAhead] }));
    await intruder.run("SET", "junctor:revoked", "forged");
    await untilWritten("forged");
    expect(areRevoked("ada")).toEqual([true, true]);
    expect(await statuses()).toEqual([401, 401]);
  });

  test("does not restore a caller by news and values that replicas signed earlier", async () => {
    await revoke("ada");
    await untilHeard();
    const from = intruder.heard.length;
    replicas[1]?.gateway.controls.restore("ada");
    await expect.poll(() => areRevoked("ada")).toEqual([false, false]);
    expect(await statuses()).not.toContain(401);
    await untilHeard();
    const kept = await Promise.all(
      ["junctor:revoked", ...slots].map(async (name) => [name, await intruder.run("GET", name)] as const),
    );
    const replayed = intruder.heard.slice(from);
    expect(replayed.length).toBeGreaterThan(0);

    await revoke("ada");
    for (const news of replayed) await intruder.run("PUBLISH", "junctor:news", news);
    for (const [name, value] of kept) if (typeof value === "string") await intruder.run("SET", name, value);
    await untilHeard();
    await untilWritten(String(kept[0]?.[1]));
    expect(areRevoked("ada")).toEqual([true, true]);
    expect(await statuses()).toEqual([401, 401]);
  });

  test("adds no replica, and the log reports the attempt", async () => {
    const warnings: string[] = [];
    const onWarning = (text: string): number => warnings.push(text);
    await using store = await connectRedisStore({ url: engine.url, secrets: [secret], onWarning });
    const address = { kind: "socket", path: "/tmp/of-the-intruder" };
    const facts = JSON.stringify({ language: 1, address, version: "1" });
    await intruder.run("SET", "junctor:replica:ffffffffffff", facts);
    await intruder.run("SADD", "junctor:replicas", "ffffffffffff");
    for (let round = 0; round < 2; round++)
      expect((await store.register("aaaaaaaaaaaa", "{}", 60_000)).has("ffffffffffff")).toBe(false);
    expect(warnings).toEqual([
      expect.stringContaining("the registration of a replica in the store is ignored"),
    ]);
    // Facts of one replica are not those of another.
    const own = await intruder.run("GET", "junctor:replica:aaaaaaaaaaaa");
    await intruder.run("SET", "junctor:replica:ffffffffffff", String(own));
    expect((await store.register("aaaaaaaaaaaa", "{}", 60_000)).has("ffffffffffff")).toBe(false);
  });

  test("ends no session", async () => {
    await intruder.run("SET", "junctor:gone:session", "1");
    expect(await stores[0]?.read("gone:session")).toBeUndefined();
    await stores[0]?.write("gone:session", "1", 60_000);
    expect(await stores[1]?.read("gone:session")).toBe("1");
  });

  test("while secrets are changed, facts signed with either of them are believed", async () => {
    const [before, after] = ["the secret of before", "the secret of after"];
    const connect = (...secrets: string[]) =>
      connectRedisStore({ url: engine.url, prefix: "both:", secrets });
    await using old = await connect(before, after);
    await using next = await connect(after, before);
    await using last = await connect(after);
    await old.write("by:old", "1", 60_000);
    await next.write("by:next", "2", 60_000);
    expect([await next.read("by:old"), await old.read("by:next")]).toEqual(["1", "2"]);
    expect([await last.read("by:old"), await last.read("by:next")]).toEqual([undefined, "2"]);
  });
});

/** A program of somebody who reached the engine. */
interface Intruder {
  /** All news so far. */
  readonly heard: readonly string[];
  run(...command: string[]): Promise<unknown>;
  close(): Promise<void>;
}

async function connectIntruder(url: string): Promise<Intruder> {
  const heard: string[] = [];
  const [commands, news] = [createClient({ url, RESP: 2 }), createClient({ url, RESP: 2 })];
  await Promise.all([commands.connect(), news.connect()]);
  await news.subscribe("junctor:news", (text) => void heard.push(text));
  return {
    heard,
    run: (...command) => commands.sendCommand(command),
    close: async () => {
      commands.destroy();
      news.destroy();
    },
  };
}
