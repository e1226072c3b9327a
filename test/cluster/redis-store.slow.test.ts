import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { joinCluster } from "../../packages/junctor/src/cluster/membership.ts";
import { connectRedisStore } from "../../packages/junctor/src/cluster/redis-store.ts";
import type { ClusterStore } from "../../packages/junctor/src/cluster/store.ts";
import { freePort, freePorts } from "../support/free-ports.ts";
import { bin } from "../support/junctor-bin.ts";
import { describeStore } from "../support/store-suite.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { type Engine, startEngine } from "./support/engine.ts";
import { startProgram, until } from "./support/program.ts";

const hasRedis = spawnSync("redis-server", ["--version"]).status === 0;
if (!hasRedis) console.warn("redis-server is not installed: the tests of the store in Redis are skipped");

const secrets = ["a secret of the replicas of this test"];
const password = "p%40ss:w0rd-that-must-not-leak";
const plainPassword = "p@ss:w0rd-that-must-not-leak";

describe.skipIf(!hasRedis)("with a real engine", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
    await using store = await connectRedisStore({ secrets, url: engine.url });
    await untilLeases(store);
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  describeStore("Redis", async () => {
    const prefix = `${randomBytes(6).toString("hex")}:`;
    const [a, b] = await Promise.all([
      connectRedisStore({ secrets, url: engine.url, prefix }),
      connectRedisStore({ secrets, url: engine.url, prefix }),
    ]);
    // The engine tells its age in whole seconds, so each connection may take it for a second younger.
    await Promise.all([untilLeases(a), untilLeases(b)]);
    return {
      a,
      b,
      pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      [Symbol.asyncDispose]: async () => {
        await a[Symbol.asyncDispose]();
        await b[Symbol.asyncDispose]();
      },
    };
  });

  test("gateways with different prefixes and databases do not see each other's facts", async () => {
    await using one = await connectRedisStore({ secrets, url: engine.url, prefix: "one:" });
    await using two = await connectRedisStore({ secrets, url: engine.url, prefix: "two:" });
    await using three = await connectRedisStore({ secrets, url: `${engine.url}/3`, prefix: "one:" });
    await one.write("k", "v", 10_000);
    await one.register("aaaaaaaaaaaa", "{}", 10_000);
    expect(await two.read("k")).toBeUndefined();
    expect(await three.read("k")).toBeUndefined();
    expect([...(await two.register("bbbbbbbbbbbb", "{}", 10_000)).keys()]).toEqual(["bbbbbbbbbbbb"]);
  });

  test("gateways with different databases do not receive each other's news", async () => {
    await using one = await connectRedisStore({ secrets, url: engine.url, prefix: "apart:" });
    await using three = await connectRedisStore({ secrets, url: `${engine.url}/3`, prefix: "apart:" });
    const heard: string[] = [];
    three.onNews((news) => heard.push(news));
    await one.publish("of one");
    await three.publish("of three");
    await expect.poll(() => heard).toEqual(["of three"]);
  });

  test("a connection that is cut is opened again, and news arrives again", async () => {
    await using proxy = await TcpProxy.to(Number(new URL(engine.url).port));
    await using store = await connectRedisStore({
      secrets,
      url: `redis://127.0.0.1:${proxy.port}`,
      prefix: "cut:",
    });
    const heard: string[] = [];
    store.onNews((news) => heard.push(news));
    proxy.isDropping = true;
    proxy.cut();
    await expect.poll(() => outcome(store.read("k"))).toBe("store.unreachable");
    proxy.isDropping = false;
    await expect.poll(() => outcome(store.read("k"))).toBe("done");
    await expect
      .poll(async () => {
        await store.publish("again").catch(() => {});
        return heard.length;
      })
      .toBeGreaterThan(0);
  });

  test("an engine that became a copy is connected to again, because its name may mean another one now", async () => {
    await using own = await start();
    await using proxy = await TcpProxy.to(Number(new URL(own.url).port));
    await using store = await connectRedisStore({ secrets, url: `redis://127.0.0.1:${proxy.port}` });
    const before = proxy.connects;
    await run(own.url, ["REPLICAOF", "127.0.0.1", "1"]);
    await expect(store.register("aaaaaaaaaaaa", "{}", 10_000)).rejects.toThrow("READONLY");
    await expect.poll(() => proxy.connects).toBeGreaterThan(before);
    await run(own.url, ["REPLICAOF", "NO", "ONE"]);
    await expect.poll(() => outcome(store.write("k", "v", 10_000))).toBe("done");
  });

  test("an engine that was restarted between two renewals does not make other replicas dead", async () => {
    await using own = await start();
    await using store = await connectRedisStore({ secrets, url: own.url });
    const address = { kind: "socket", path: "-" } as const;
    await using member = await joinCluster({ store, address, version: "1" });
    const facts = JSON.stringify({ language: 1, address, version: "1" });
    await store.register("aaaaaaaaaaaa", facts, 10_000);
    expect(await member.findAgain("aaaaaaaaaaaa")).toMatchObject({ id: "aaaaaaaaaaaa" });
    await own.kill();
    await own.start();
    await expect.poll(() => outcome(store.read("k"))).toBe("done");
    expect(await outcome(member.findAgain("aaaaaaaaaaaa"))).toBe("store.starting");
  });

  test("scripts are sent again to an engine that forgot them", async () => {
    await using store = await connectRedisStore({ secrets, url: engine.url, prefix: "scripts:" });
    await store.claim("k", "A", 10_000);
    await run(engine.url, ["SCRIPT", "FLUSH"]);
    expect(await store.claim("k", "B", 10_000)).toBe("A");
  });

  test("no more than 1,024 operations wait, and a stopped engine fails them all within 5 s", async () => {
    await using own = await start();
    await using store = await connectRedisStore({ secrets, url: own.url });
    own.signal("SIGSTOP");
    const outcomes = await Promise.all(Array.from({ length: 1100 }, () => outcome(store.read("k"))));
    own.signal("SIGCONT");
    expect(outcomes.filter((code) => code === "store.full")).toHaveLength(1100 - 1024);
    expect(outcomes.filter((code) => code === "store.unreachable")).toHaveLength(1024);
    await expect.poll(() => outcome(store.read("k"))).toBe("done");
  });

  // The last one: the engine is young afterwards.
  test("an engine that is killed and started again gives a lease to no other, and its holder keeps it", async () => {
    await using storeA = await connectRedisStore({ secrets, url: engine.url });
    await using storeB = await connectRedisStore({ secrets, url: engine.url });
    const address = { kind: "socket", path: "-" } as const;
    await using a = await joinCluster({ store: storeA, address, version: "1" });
    await using b = await joinCluster({ store: storeB, address, version: "1" });
    let lost = 0;
    const lease = await a.hold("own:files", () => lost++);
    expect(lease).toMatchObject({ isHeld: true });
    await engine.kill();
    await expect.poll(() => outcome(storeA.read("k"))).toBe("store.unreachable");
    await engine.start();
    // Asked all the time, the engine never gives it to the other.
    const asks = new Map<string, number>();
    await expect
      .poll(async () => {
        const held = await b
          .hold("own:files", () => {})
          .catch((error: unknown) => ({ holder: codeOf(error) }));
        const answer = "release" in held ? "taken" : held.holder;
        asks.set(answer, (asks.get(answer) ?? 0) + 1);
        return answer;
      })
      .toBe(a.id);
    expect(asks.has("taken")).toBe(false);
    expect(asks.has("store.starting")).toBe(true);
    expect([lost, a.isIn, b.isIn]).toEqual([0, true, true]);
    expect(await b.find(a.id)).toMatchObject({ id: a.id });
  });
});

describe.skipIf(!hasRedis)("an engine with a password", () => {
  test("is used with the one of the URL, which no error repeats", async () => {
    await using engine = await start("--requirepass", plainPassword);
    const url = engine.url.replace("//", `//:${password}@`);
    await using store = await connectRedisStore({ secrets, url });
    await store.write("k", "v", 10_000);
    expect(await store.read("k")).toBe("v");
    for (const other of [url.replace("w0rd", "wrong"), engine.url]) {
      const error: unknown = await connectRedisStore({ secrets, url: other }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).toMatchObject({ name: "StoreError", code: "store.refused" });
      expect(JSON.stringify(error) + String(error) + String((error as Error).stack)).not.toMatch(
        /leak|p@ss|p%40/u,
      );
    }
    await engine.kill();
    await expect.poll(() => outcome(store.read("k"))).toBe("store.unreachable");
    await expect(store.read("k")).rejects.not.toThrow(/leak/u);
  });

  test("an engine that repeats what it was sent in its refusal leaks no password", async () => {
    await using engine = await start("--rename-command", "AUTH", "");
    const url = engine.url.replace("//", `//:${password}@`);
    const error: unknown = await connectRedisStore({ secrets, url }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "store.refused" });
    expect(String((error as Error).stack)).not.toMatch(/leak|p@ss/u);
  });
});

test.skipIf(!hasRedis)(
  "an engine with TLS is used when its certificate is trusted, and refused when it is not",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "junctor-tls-"));
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const made = spawnSync("openssl", [
      ..."req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1".split(
        " ",
      ),
      "-keyout",
      key,
      "-out",
      cert,
    ]);
    expect(made.status).toBe(0);
    const [port = 0, plain = 0, http = 0] = await freePorts(3);
    const tls = [
      "--tls-port",
      String(port),
      "--tls-cert-file",
      cert,
      "--tls-key-file",
      key,
      "--tls-auth-clients",
      "no",
    ];
    await using _engine = await startEngine(plain, folder, tls);
    const url = `rediss://127.0.0.1:${port}`;
    await expect(connectRedisStore({ secrets, url })).rejects.toMatchObject({ code: "store.refused" });
    const env = {
      ...process.env,
      NODE_EXTRA_CA_CERTS: cert,
      JUNCTOR_STORE: url,
      JUNCTOR_SECRET: "x".repeat(40),
      XDG_STATE_HOME: folder,
      XDG_CACHE_HOME: folder,
    };
    const gateway = startProgram(process.execPath, [bin, "serve", "--port", String(http)], env);
    try {
      const isReady = (): Promise<boolean> =>
        fetch(`http://127.0.0.1:${http}/ready`).then(
          ({ ok }) => ok,
          () => false,
        );
      await until("the gateway is ready", isReady, gateway);
    } finally {
      await gateway.end("SIGTERM");
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

test.skipIf(!hasRedis)("the log says why an engine refuses the facts of a replica", async () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-full-"));
  await using engine = await start();
  const env = {
    ...process.env,
    JUNCTOR_STORE: engine.url,
    JUNCTOR_SECRET: "x".repeat(40),
    XDG_STATE_HOME: folder,
    XDG_CACHE_HOME: folder,
  };
  const gateway = startProgram(process.execPath, [bin, "serve", "--port", "0"], env);
  try {
    await until("the gateway listens", () => gateway.output().includes("http://127.0.0.1"), gateway);
    await run(engine.url, ["CONFIG", "SET", "maxmemory", "1"]);
    const isTold = (): boolean =>
      /"error":"[^"]*OOM[^"]*","msg":"the store cannot be reached"/u.test(gateway.output());
    await until("the log says why", isTold, gateway);
  } finally {
    await gateway.end("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  }
});

async function start(...options: readonly string[]): Promise<Engine> {
  const port = await freePort();
  return startEngine(port, tmpdir(), options);
}

async function untilLeases(store: ClusterStore): Promise<void> {
  const claim = async (): Promise<void> =>
    expect(await outcome(store.claim("probe", "test", 10_000))).toBe("done");
  await vi.waitFor(claim, { timeout: 90_000, interval: 100 });
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code);
}

function outcome(operation: Promise<unknown>): Promise<string> {
  return operation.then(() => "done", codeOf);
}

async function run(url: string, command: readonly string[]): Promise<void> {
  const { createClient } = await import("@redis/client");
  const client = await createClient({ url }).connect();
  await client.sendCommand([...command]);
  client.destroy();
}
