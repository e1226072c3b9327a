import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ClientCapabilities } from "../../packages/core/src/mcp/types.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { settlesAtOnce } from "../support/at-once.ts";
import { isAlive } from "../support/processes.ts";
import { callTool, listTools } from "../support/use-provider.ts";

const quickFile = fileURLToPath(new URL("../fixtures/children/quick.mjs", import.meta.url));
const quick = (...args: readonly string[]): object => ({
  command: process.execPath,
  args: [quickFile, ...args],
});
const shell = (script: string): object => ({ command: "/bin/sh", args: ["-c", script] });

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-supervision-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function pidsIn(file: string): Promise<readonly number[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter(Boolean).map(Number);
}

async function namesOf(
  { provider }: Gateway,
  capabilities: ClientCapabilities = {},
): Promise<readonly string[]> {
  const tools = await listTools(provider, createCallContext({ capabilities }));
  return tools.map(({ name }) => name);
}

async function call({ provider }: Gateway, name: string): Promise<string> {
  const outcome = await callTool(provider, name);
  if (outcome.kind !== "complete") throw new Error(outcome.kind);
  return (outcome.result.value as { content: { text: string }[] }).content[0]?.text ?? "";
}

const statusOf = (gateway: Gateway, server: string): string | undefined =>
  gateway.status().find(({ name }) => name === server)?.status;

describe("ten dead and ten slow servers among fifty", () => {
  test("leave the others there, and no list waits for them twice", async () => {
    const entries = (
      prefix: string,
      count: number,
      entry: (index: number) => object,
    ): readonly [string, object][] =>
      Array.from({ length: count }, (_, index) => [`${prefix}${index}`, entry(index)]);
    const mcpServers = Object.fromEntries([
      ...entries("dead", 10, () => shell("exit 1")),
      ...entries("slow", 10, () => shell("exec sleep 100")),
      ...entries("quick", 30, (index) => quick(`--tools=tool${index}`)),
    ]);
    await using gateway = await createGateway({ mcpServers }, { firstListMs: 2000 });
    await gateway.ready;
    // What is answered at once is not a promise. A timer may fire a millisecond before the clock says so.
    await expect.poll(() => listTools(gateway.provider)).toBeInstanceOf(Array);
    await expect.poll(() => gateway.status().filter(({ status }) => status === "up").length).toBe(30);
    // Each is listed right after it is up.
    await expect.poll(async () => (await namesOf(gateway)).length).toBe(30);
    const { items, meta } = await gateway.provider.list("tools", createCallContext());
    expect(items.map(({ name }) => name)).toEqual(
      Array.from({ length: 30 }, (_, index) => `quick${index}__tool${index}`),
    );
    const missing = meta?.["junctor/servers"] as { [server: string]: object };
    expect(Object.keys(missing).toSorted()).toEqual(
      Object.keys(mcpServers)
        .filter((name) => !name.startsWith("quick"))
        .toSorted(),
    );
    await expect(call(gateway, "quick7__tool7")).resolves.toMatch(/^\d+$/);
  });
});

describe("a child that cannot stay up", () => {
  test.each([
    ["ends at once", "--exit"],
    ["ends after it said who it is", "--exit-after=initialize"],
    ["ends after it said what it has", "--exit-after=tools/list"],
  ])("and %s is started six times in the first minute, and no more", async (_, flag) => {
    const starts = join(folder, `starts${flag}`.replaceAll("/", "-"));
    const clock = createVirtualClock(Date.now());
    await using gateway = await createGateway(
      { mcpServers: { looping: quick(flag, `--starts=${starts}`), fine: quick() } },
      { clock },
    );
    // Time stands still while it starts, and moves on when it is down.
    for (let second = 0; second < 59; second++) {
      await expect.poll(() => statusOf(gateway, "looping")).toBe("down");
      await clock.advance(1000);
    }
    await expect.poll(() => statusOf(gateway, "looping")).toBe("down");
    expect(await pidsIn(starts)).toHaveLength(6);
    expect(gateway.status()[0]?.trouble).toContain("it failed too often");
    expect(statusOf(gateway, "fine")).toBe("up");
    await expect(call(gateway, "fine__echo")).resolves.toMatch(/^\d+$/);
    for (const pid of await pidsIn(starts)) expect(isAlive(pid)).toBe(false);
  });
});

describe("a child that dies", () => {
  test("in a call fails that call at once, is started again and listed again, and listeners are notified", async () => {
    const file = join(folder, "tools");
    const starts = join(folder, "starts-relisted");
    await writeFile(file, "old,die");
    await using gateway = await createGateway({
      mcpServers: { changing: quick(`--tools-file=${file}`, `--starts=${starts}`), other: quick() },
    });
    await gateway.ready;
    await expect.poll(() => namesOf(gateway)).toEqual(["changing__old", "changing__die", "other__echo"]);
    const heard: string[] = [];
    gateway.provider.onChange?.(({ part }) => heard.push(part));
    await writeFile(file, "new,die");
    const failing = call(gateway, "changing__die");
    await expect(failing).rejects.toMatchObject({ code: "upstream.lost", delivery: "outcome_unknown" });
    // Until it is back, what it listed last is still there.
    expect(await namesOf(gateway)).toContain("other__echo");
    await expect.poll(() => namesOf(gateway)).toEqual(["changing__new", "changing__die", "other__echo"]);
    await expect.poll(() => heard).toContain("tools");
    await expect(call(gateway, "changing__new")).resolves.toMatch(/^\d+$/);
    await expect(call(gateway, "changing__old")).rejects.toMatchObject({ code: "provider.not_found" });
    expect(await pidsIn(starts)).toHaveLength(2);
  });

  test("and comes back with the same tools is not a change", async () => {
    await using gateway = await createGateway({ mcpServers: { same: quick("--tools=die") } });
    await expect.poll(() => namesOf(gateway)).toEqual(["same__die"]);
    const heard: string[] = [];
    gateway.provider.onChange?.(({ part }) => heard.push(part));
    await expect(call(gateway, "same__die")).rejects.toMatchObject({ code: "upstream.lost" });
    await expect.poll(() => statusOf(gateway, "same")).toBe("down");
    await expect.poll(() => statusOf(gateway, "same")).toBe("up");
    await expect(call(gateway, "same__die")).rejects.toMatchObject({ code: "upstream.lost" });
    expect(heard).toEqual([]);
  });
});

describe("a server that hangs in tools/list", () => {
  const config = { mcpServers: { hanging: quick("--hang=tools/list"), fine: quick() } };

  test("does not hold up a list", async () => {
    await using gateway = await createGateway(config, { firstListMs: 300 });
    await gateway.ready;
    await expect.poll(() => statusOf(gateway, "hanging")).toBe("up");
    await expect.poll(() => statusOf(gateway, "fine")).toBe("up");
    await expect.poll(() => namesOf(gateway)).toEqual(["fine__echo"]);
    for (let count = 0; count < 20; count++) expect(await settlesAtOnce(namesOf(gateway))).toBe(true);
    await expect(call(gateway, "fine__echo")).resolves.toMatch(/^\d+$/);
  });

  test("holds up only the first list of callers that can be asked", async () => {
    await using gateway = await createGateway(config, { firstListMs: 300 });
    await gateway.ready;
    await expect.poll(() => statusOf(gateway, "hanging")).toBe("up");
    const capabilities = { elicitation: { form: {} } };
    await namesOf(gateway, capabilities);
    await expect.poll(() => namesOf(gateway, capabilities)).toEqual(["fine__echo"]);
    expect(await settlesAtOnce(namesOf(gateway, capabilities))).toBe(true);
  });

  test("does not hold up the end", async () => {
    const gateway = await createGateway(config, { firstListMs: 300 });
    await gateway.ready;
    // It would take five minutes to answer.
    await gateway.close();
    expect(gateway.status().map(({ status }) => status)).not.toContain("up");
  });
});

describe("a long call", () => {
  test("of a child that does one thing at a time is left alone, however many others wait", async () => {
    const starts = join(folder, "starts-busy");
    await using gateway = await createGateway({
      mcpServers: { busy: quick("--one-at-a-time", "--tools=wait,echo", `--starts=${starts}`) },
      junctor: { servers: { busy: { timeoutMs: 60_000 } } },
    });
    await expect.poll(() => namesOf(gateway)).toHaveLength(2);
    const long = call(gateway, "busy__wait");
    const others = Array.from({ length: 20 }, () => call(gateway, "busy__echo"));
    expect(await settlesAtOnce(namesOf(gateway))).toBe(true);
    const [pid] = await pidsIn(starts);
    process.kill(pid ?? 0, "SIGUSR2");
    await expect(long).resolves.toBe(`${pid}`);
    for (const other of others) await expect(other).resolves.toBe(`${pid}`);
    expect(await pidsIn(starts)).toHaveLength(1);
  });

  test("is not killed by a sign of life that has to wait behind it", async () => {
    const clock = createVirtualClock(Date.now());
    const pings: string[] = [];
    let finish = (): void => {};
    // A server behind a proxy: one call is long, another meets a 502, and whatever comes meanwhile waits.
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        if (request.method !== "POST") return response.writeHead(405).end();
        const { id, method, params } = JSON.parse(text) as {
          id?: number;
          method: string;
          params?: { name?: string; protocolVersion?: string };
        };
        const answer = (result: object): void => {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
        };
        if (id === undefined) return response.writeHead(202).end();
        if (method === "initialize") {
          const serverInfo = { name: "proxied", version: "1.0.0" };
          return answer({ protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo });
        }
        if (method === "tools/list")
          return answer({
            tools: ["long", "bad"].map((name) => ({ name, inputSchema: { type: "object" } })),
          });
        if (method === "ping") return void pings.push(method);
        if (params?.name === "bad") return response.writeHead(502).end();
        if (params?.name === "long")
          return void (finish = () => answer({ content: [{ type: "text", text: "done" }] }));
        response.writeHead(400, { "content-type": "application/json" });
        response.end(
          JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } }),
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    try {
      await using gateway = await createGateway(
        { mcpServers: { proxied: { type: "http", url: `http://127.0.0.1:${port}/mcp` } } },
        { clock },
      );
      await expect.poll(() => statusOf(gateway, "proxied")).toBe("up");
      await gateway.ready;
      const long = call(gateway, "proxied__long");
      await expect(call(gateway, "proxied__bad")).rejects.toMatchObject({ code: "upstream.failed" });
      await expect.poll(() => pings).toHaveLength(1);
      await clock.advance(10_000);
      expect(statusOf(gateway, "proxied")).toBe("up");
      finish();
      await expect(long).resolves.toBe("done");
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
