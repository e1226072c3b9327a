// When the processes of a server are started, whose they are, and when they end.
import { describe, expect, test } from "vitest";
import { isAlive } from "../support/processes.ts";
import { connectTo, dialects, type GatewayClient, textOf } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";
import { statefulServer } from "./support/servers.ts";

const namesOf = async (client: GatewayClient): Promise<readonly string[]> =>
  (await client.listTools()).map(({ name }) => name);

interface Counted {
  readonly calls: number;
  readonly pid: number;
}
const count = async (client: GatewayClient): Promise<Counted> =>
  (await client.call("child__count")).structuredContent as Counted;

describe("a lazy server", () => {
  const config = (more: object = {}): object => ({
    mcpServers: { child: statefulServer(), other: statefulServer() },
    junctor: { servers: { child: { start: "lazy", ...more } } },
  });

  test("starts when its tools are looked at, and they are in that list", async () => {
    await using at = await startTestGateway(config());
    await using client = await connectTo(at.url);
    expect(at.pidsOf("other")).toHaveLength(1);
    expect(at.gateway.status()[0]).toMatchObject({ name: "child", status: "idle" });
    expect(at.pidsOf("child")).toHaveLength(0);
    expect(await namesOf(client)).toContain("child__count");
    expect(at.pidsOf("child")).toHaveLength(1);
    expect(await count(client)).toMatchObject({ calls: 1, pid: at.pidsOf("child")[0] });
  });

  test("is called by a client that knows its tool from before and lists nothing", async () => {
    await using at = await startTestGateway(config());
    await using client = await dialects[0]!.connect(at.url);
    expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
  });

  test("stops when nobody needs it, stays listed, and starts again when it is called", async () => {
    await using at = await startTestGateway(config({ idleStopMs: 300 }));
    await using client = await dialects[0]!.connect(at.url);
    await namesOf(client);
    const { pid } = await count(client);
    await expect.poll(() => isAlive(pid)).toBe(false);
    await expect.poll(() => at.gateway.status()[0]?.status).toBe("idle");
    const again = await count(client);
    expect(again).toMatchObject({ calls: 1 });
    expect(again.pid).not.toBe(pid);
    await expect.poll(() => isAlive(again.pid)).toBe(false);
    // The first start may be news to somebody; stopping and starting again is not.
    expect(client.changes.length).toBeLessThanOrEqual(1);
  });

  test("that stopped is listed without being started for each look", async () => {
    await using at = await startTestGateway(config({ idleStopMs: 200 }));
    await using client = await dialects[0]!.connect(at.url);
    await namesOf(client);
    await expect.poll(() => at.gateway.status()[0]?.status).toBe("idle");
    const started = at.pidsOf("child").length;
    expect(await namesOf(client)).toContain("child__count");
    expect(at.pidsOf("child")).toHaveLength(started);
  });

  test("is not stopped in the middle of a call", async () => {
    const lazy = { start: "lazy", idleStopMs: 100 };
    const mcpServers = { child: statefulServer(), other: statefulServer() };
    await using at = await startTestGateway({
      mcpServers,
      junctor: { servers: { child: lazy, other: lazy } },
    });
    await using client = await dialects[0]!.connect(at.url);
    await namesOf(client);
    const held = client.call("child__hold", { key: "k" });
    held.catch(() => {});
    await expect.poll(() => at.stderrOf("child")).toContain("held k");
    // Another one that is used later, and is stopped, shows that the time has passed.
    await client.call("other__count");
    await expect.poll(() => at.gateway.status()[1]).toMatchObject({ name: "other", status: "idle" });
    await client.call("child__release", { key: "k" });
    expect(textOf(await held)).toBe("released k");
  });
});

describe("sharing", () => {
  const config = (sharing: string, more: object = {}): object => ({
    mcpServers: { child: statefulServer() },
    junctor: { servers: { child: { sharing, ...more } } },
  });

  test("is of one process by default", async () => {
    await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
    const clients = await Promise.all(dialects.map(({ connect }) => connect(at.url)));
    const counts: Counted[] = [];
    for (const client of clients) counts.push(await count(client));
    expect(counts.map(({ calls }) => calls)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(counts.map(({ pid }) => pid)).size).toBe(1);
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });

  test("perSession gives every session a process that remembers it alone", async () => {
    await using at = await startTestGateway(config("perSession"));
    const legacy = dialects.filter(({ isModern }) => !isModern);
    const clients = await Promise.all([...legacy, ...legacy].map(({ connect }) => connect(at.url)));
    const first = await Promise.all(clients.map((client) => count(client)));
    const second = await Promise.all(clients.map((client) => count(client)));
    expect(first.map(({ calls }) => calls)).toEqual(clients.map(() => 1));
    expect(second.map(({ calls }) => calls)).toEqual(clients.map(() => 2));
    expect(second.map(({ pid }) => pid)).toEqual(first.map(({ pid }) => pid));
    expect(new Set(first.map(({ pid }) => pid)).size).toBe(clients.length);
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });

  test("perSession ends the process of a session that ended", async () => {
    await using at = await startTestGateway(config("perSession"));
    const client = await dialects[0]!.connect(at.url);
    const { pid } = await count(client);
    await client[Symbol.asyncDispose]();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("exclusive gives every call a process of its own while it lasts", async () => {
    await using at = await startTestGateway(config("exclusive"));
    const clients = await Promise.all(dialects.map(({ connect }) => connect(at.url)));
    const before = at.pidsOf("child").length;
    const held = clients.map((client, index) => client.call("child__hold", { key: `k${index}` }));
    for (const call of held) call.catch(() => {});
    for (const index of clients.keys())
      await expect.poll(() => at.stderrOf("child")).toContain(`held k${index}`);
    expect(at.pidsOf("child").length - before).toBe(clients.length);
    await at.gateway.close();
    expect(at.pidsOf("child").filter(isAlive)).toEqual([]);
    await Promise.allSettled(held);
    await Promise.allSettled(clients.map((client) => client[Symbol.asyncDispose]()));
  });

  test("exclusive makes calls wait at the limit, and none is lost", async () => {
    await using at = await startTestGateway(config("exclusive", { maxConnections: 2 }));
    await using client = await connectTo(at.url);
    const counts = await Promise.all(Array.from({ length: 12 }, () => count(client)));
    const pids = new Set(counts.map(({ pid }) => pid));
    expect(pids.size).toBeLessThanOrEqual(2);
    const perPid = [...pids].map((pid) =>
      counts.filter((counted) => counted.pid === pid).map(({ calls }) => calls),
    );
    for (const calls of perPid)
      expect(calls.toSorted((a, b) => a - b)).toEqual(calls.map((_, index) => index + 1));
  });
});
