// What callers see, and what they do not, when a server behind the gateway fails.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { isAlive } from "../support/processes.ts";
import { standsStill } from "../support/stands-still.ts";
import { connectTo, dialects, type GatewayClient, textOf } from "./support/clients.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { childServer, deadServer, startSdkServer, statefulServer } from "./support/servers.ts";

const muteServer = childServer("--pid", "--stop-at=initialize");
const hangingServer = { command: process.execPath, args: ["-e", "setInterval(() => {}, 1000)"] };

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "junctor-failure-"))));
afterEach(() => rm(folder, { recursive: true }));

interface ListResult {
  readonly tools?: readonly { readonly name: string }[];
  readonly _meta?: { readonly [key: string]: unknown };
}

/** The whole result of a list, with its `_meta`. */
async function listWhole(url: string, method: string, revision?: "2025-11-25"): Promise<ListResult> {
  const eras = createEraCache();
  await using client = await connect(url, { eras, ...(revision === undefined ? {} : { revision }) });
  return (await client.request(method)) as ListResult;
}

const statusOf = ({ gateway }: TestGateway, server: string): string | undefined =>
  gateway.status().find(({ name }) => name === server)?.status;

describe("a server that is dead from the start", () => {
  test("is named in the lists, and the others work", async () => {
    await using at = await startTestGateway({ mcpServers: { dead: deadServer, child: statefulServer() } });
    for (const revision of [undefined, "2025-11-25"] as const) {
      for (const method of ["tools/list", "resources/list", "resources/templates/list", "prompts/list"]) {
        const { _meta } = await listWhole(at.url, method, revision);
        expect(_meta?.["junctor/servers"]).toEqual({
          dead: expect.objectContaining({ isListed: false }) as unknown,
        });
      }
      const { tools } = await listWhole(at.url, "tools/list", revision);
      expect(tools?.map(({ name }) => name)).toContain("child__echo");
    }
    await using client = await connectTo(at.url);
    expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
    await expect(client.call("dead__echo")).rejects.toMatchObject({
      data: { code: "upstream.unavailable", delivery: "not_sent" },
    });
    await expect(client.call("other__echo")).rejects.toMatchObject({ rpcCode: -32602 });
    // Between two attempts it says what was wrong with the last.
    await expect.poll(() => at.gateway.status()[0]?.trouble).toContain("code 3");
  });

  test("is not named when nothing is missing", async () => {
    await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
    expect((await listWhole(at.url, "tools/list"))._meta?.["junctor/servers"]).toBeUndefined();
  });

  test("or hangs does not keep a list waiting", async () => {
    const mcpServers = { hanging: hangingServer, child: statefulServer() };
    await using at = await startTestGateway({ mcpServers }, { firstListMs: 1000 });
    const { _meta } = await listWhole(at.url, "tools/list");
    expect(_meta?.["junctor/servers"]).toEqual({ hanging: { status: "starting", isListed: false } });
    await using client = await connectTo(at.url);
    expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
  });

  test("that cannot be reached is named without its address", async () => {
    const mcpServers = { gone: { url: "http://127.0.0.1:9/mcp" }, child: statefulServer() };
    await using at = await startTestGateway({ mcpServers });
    const { _meta } = await listWhole(at.url, "tools/list");
    expect(_meta?.["junctor/servers"]).toMatchObject({ gone: { isListed: false } });
    expect(JSON.stringify(_meta)).not.toContain("127.0.0.1");
    expect(statusOf(at, "gone")).toBe("down");
  });
});

describe("a child that is killed in the middle of a call", () => {
  test.each(dialects)(
    "fails that call of $name with one typed error, and no other",
    async ({ connect: open }) => {
      await using at = await startTestGateway({
        mcpServers: { one: statefulServer(), two: statefulServer() },
      });
      await using client = await open(at.url);
      const ended: string[] = [];
      const lost = client.call("one__hold", { key: "a" }).finally(() => ended.push("one"));
      lost.catch(() => {});
      const kept = client.call("two__hold", { key: "b" }).finally(() => ended.push("two"));
      await expect.poll(() => at.stderrOf("one")).toContain("held a");
      await expect.poll(() => at.stderrOf("two")).toContain("held b");
      process.kill(at.pidsOf("one")[0]!, "SIGKILL");
      await expect(lost).rejects.toMatchObject({
        data: { code: "upstream.lost", delivery: "outcome_unknown", server: "one" },
      });
      expect(ended).toEqual(["one"]);
      expect(textOf(await client.call("two__echo", { text: "hi" }))).toBe("hi");
      await client.call("two__release", { key: "b" });
      expect(textOf(await kept)).toBe("released b");
      expect(textOf(await client.call("one__echo", { text: "again" }))).toBe("again");
      expect(at.pidsOf("one")).toHaveLength(2);
      expect(at.pidsOf("two")).toHaveLength(1);
    },
  );

  test.each(dialects)(
    "fails it for the user of $name and for all others at once",
    async ({ connect: open }) => {
      await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
      await using hers = await open(at.url, { hasUser: true });
      await using other = await open(at.url);
      await hers.listTools();
      const calls = [hers.call("child__hold", { key: "a" }), other.call("child__hold", { key: "b" })];
      for (const call of calls) call.catch(() => {});
      await expect.poll(() => at.stderrOf("child")).toContain("held a");
      await expect.poll(() => at.stderrOf("child")).toContain("held b");
      expect(at.pidsOf("child")).toHaveLength(1);
      process.kill(at.pidsOf("child")[0]!, "SIGKILL");
      for (const call of calls)
        await expect(call).rejects.toMatchObject({
          data: { code: "upstream.lost", delivery: "outcome_unknown", server: "child" },
        });
      expect(textOf(await hers.call("child__echo", { text: "again" }))).toBe("again");
      expect(at.pidsOf("child")).toHaveLength(2);
    },
  );

  test("by itself, says so too", async () => {
    await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
    await using client = await connectTo(at.url);
    await expect(client.call("child__die")).rejects.toMatchObject({
      data: { code: "upstream.lost", delivery: "outcome_unknown", server: "child" },
    });
    expect(textOf(await client.call("child__count"))).toBe("1");
  });

  test("and comes back with other tools announces them to everybody", async () => {
    const tools = join(folder, "tools");
    const mcpServers = { child: statefulServer([`--tools=${tools}`]), other: statefulServer() };
    await using at = await startTestGateway({ mcpServers });
    const clients = await Promise.all(dialects.map(({ connect: open }) => open(at.url)));
    await Promise.all(clients.map((client) => client.watch()));
    await Promise.all(clients.map((client) => client.listTools()));
    await writeFile(tools, "sprout\n");
    process.kill(at.pidsOf("child")[0]!, "SIGKILL");
    for (const client of clients) {
      await expect.poll(() => client.changes).toContain("tools");
      expect((await client.listTools()).map(({ name }) => name)).toContain("child__sprout");
      expect(textOf(await client.call("child__sprout"))).toBe("this is sprout");
    }
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
  });

  test("and comes back as it was announces nothing", async () => {
    await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
    await using client = await dialects[0]!.connect(at.url);
    await client.listTools();
    process.kill(at.pidsOf("child")[0]!, "SIGKILL");
    await expect.poll(() => at.pidsOf("child").length).toBe(2);
    await expect.poll(() => statusOf(at, "child")).toBe("up");
    await client.call("child__grow", { name: "marker" });
    await expect.poll(() => client.changes).toContain("tools");
    expect(client.changes).toEqual(["tools"]);
  });

  test("and does not come back keeps its place in the list, and says that a call was not sent", async () => {
    const dead = join(folder, "dead");
    await using at = await startTestGateway({ mcpServers: { child: statefulServer([`--dead-if=${dead}`]) } });
    await using client = await connectTo(at.url);
    const before = (await client.listTools()).map(({ name }) => name);
    await writeFile(dead, "");
    process.kill(at.pidsOf("child")[0]!, "SIGKILL");
    await expect.poll(() => statusOf(at, "child")).not.toBe("up");
    await expect(client.call("child__echo", { text: "hi" })).rejects.toMatchObject({
      data: { code: "upstream.unavailable", delivery: "not_sent", server: "child" },
    });
    const { tools, _meta } = await listWhole(at.url, "tools/list");
    expect(tools?.map(({ name }) => name)).toEqual(before);
    expect(_meta?.["junctor/servers"]).toMatchObject({ child: { isListed: true } });
    await rm(dead);
    const call = async (): Promise<string> =>
      client.call("child__echo", { text: "hi" }).then(textOf, () => "failed");
    await expect.poll(call).toBe("hi");
    expect((await listWhole(at.url, "tools/list"))._meta?.["junctor/servers"]).toBeUndefined();
  });
});

describe.each(["v1", "v2"] as const)(
  "an SDK %s server over HTTP that is killed in the middle of a call",
  (generation) => {
    test("fails that call, is known to be down, and is used again when it is back", async () => {
      await using http = await startSdkServer(generation);
      await using at = await startTestGateway({ mcpServers: { http: http.entry, child: statefulServer() } });
      await using client = await connectTo(at.url);
      const call = client.call("http__wait", { key: "k" });
      call.catch(() => {});
      await expect.poll(() => http.stateOf("k")).toBe("running");
      http.child.kill("SIGKILL");
      await expect(call).rejects.toMatchObject({
        data: { code: "upstream.lost", delivery: "outcome_unknown", server: "http" },
      });
      await expect.poll(() => statusOf(at, "http")).not.toBe("up");
      expect(textOf(await client.call("child__echo", { text: "hi" }))).toBe("hi");
      await expect(client.call("http__echo", { message: "hi" })).rejects.toMatchObject({
        data: { delivery: "not_sent", server: "http" },
      });
      await using back = await startSdkServer(generation, http.port);
      expect(back.port).toBe(http.port);
      const again = async (): Promise<string> =>
        client.call("http__echo", { message: "hi" }).then(textOf, () => "failed");
      await expect.poll(again).toBe("hi");
    });
  },
);

test("an idle HTTP server that restarted with other tools is listed again and announced", async () => {
  const first = await startSdkServer("v1");
  await using at = await startTestGateway({ mcpServers: { http: first.entry } });
  await using client = await dialects[0]!.connect(at.url);
  await client.listTools();
  await first[Symbol.asyncDispose]();
  await using second = await startSdkServer("v1", first.port);
  second.grow("sprout");
  // Whoever calls finds out that the session is gone, if nobody else did.
  await client.call("http__echo", { message: "hi" }).catch(() => {});
  await expect.poll(() => client.changes).toContain("tools");
  expect((await client.listTools()).map(({ name }) => name)).toContain("http__sprout");
});

test("a client of a new kind causes no notification to the others", async () => {
  await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
  await using client = await dialects[0]!.connect(at.url);
  await client.listTools();
  await using other = await dialects[0]!.connect(at.url, { hasUser: true });
  await other.listTools();
  await other.call("child__count");
  await client.call("child__grow", { name: "marker" });
  const listed = async (): Promise<readonly string[]> => (await client.listTools()).map(({ name }) => name);
  await expect.poll(listed).toContain("child__marker");
  await expect.poll(() => client.changes.length).toBeGreaterThan(0);
  await standsStill(() => client.changes.length);
  expect(client.changes).toEqual(["tools"]);
});

test("a client with a user is listed what is new after the connection for such clients was closed", async () => {
  const clock = createVirtualClock();
  const tools = join(folder, "tools");
  await using at = await startTestGateway(
    { mcpServers: { child: statefulServer([`--tools=${tools}`]) } },
    { clock },
  );
  await using hers = await dialects[0]!.connect(at.url, { hasUser: true });
  await using other = await dialects[0]!.connect(at.url);
  await hers.listTools();
  await hers.call("child__count");
  const [, own] = at.pidsOf("child");
  await clock.advance(6 * 60_000);
  await expect.poll(() => isAlive(own!)).toBe(false);
  await writeFile(tools, "sprout\n");
  await other.call("child__grow", { name: "marker" });
  const listed = async (client: GatewayClient): Promise<readonly string[]> => {
    await clock.advance(1000);
    return (await client.listTools()).map(({ name }) => name);
  };
  await expect.poll(() => listed(other)).toContain("child__sprout");
  await expect.poll(() => listed(hers)).toContain("child__sprout");
});

describe("closing a gateway", () => {
  test("leaves no process, whatever they are about", async () => {
    const at = await startTestGateway({
      mcpServers: {
        busy: statefulServer(),
        stubborn: statefulServer(["--stubborn"]),
        own: statefulServer(),
        alone: statefulServer(),
      },
      junctor: { servers: { own: { sharing: "perSession" }, alone: { sharing: "exclusive" } } },
    });
    const client = await connectTo(at.url, { hasUser: true });
    await client.listTools();
    for (const server of ["busy", "own", "alone"]) await client.call(`${server}__count`);
    const held = ["busy", "own", "alone"].map((server) =>
      client.call(`${server}__hold`, { key: "k" }).then(
        () => "answered",
        () => "failed",
      ),
    );
    for (const server of ["busy", "own", "alone"])
      await expect.poll(() => at.stderrOf(server)).toContain("held k");
    const pids = ["busy", "stubborn", "own", "alone"].flatMap((server) => at.pidsOf(server));
    expect(pids.length).toBeGreaterThanOrEqual(6);
    expect(pids.every(isAlive)).toBe(true);
    await at.gateway.close();
    expect(pids.filter(isAlive)).toEqual([]);
    expect(await Promise.all(held)).toEqual(["failed", "failed", "failed"]);
    await client[Symbol.asyncDispose]();
    await at[Symbol.asyncDispose]();
  });

  test("does not wait for a server that never answers the handshake, nor start it again", async () => {
    // The handshake may take longer than this test.
    const junctor = { servers: { mute: { startTimeoutMs: 300_000 } } };
    const at = await startTestGateway({ mcpServers: { mute: muteServer }, junctor }, { firstListMs: 0 });
    await expect.poll(() => at.stderrOf("mute")).toContain("at initialize");
    await at.gateway.close();
    expect(at.pidsOf("mute")).toHaveLength(1);
    expect(at.pidsOf("mute").filter(isAlive)).toEqual([]);
    await at[Symbol.asyncDispose]();
  });

  test("while servers are starting starts nothing more", async () => {
    const at = await startTestGateway(
      { mcpServers: { child: statefulServer(), hanging: hangingServer } },
      { firstListMs: 0 },
    );
    await at.gateway.close();
    const pids = at.pidsOf("child");
    expect(pids.filter(isAlive)).toEqual([]);
    expect(at.gateway.status().map(({ status }) => status)).toEqual(["stopped", "stopped"]);
    await at[Symbol.asyncDispose]();
    expect(at.pidsOf("child").filter(isAlive)).toEqual([]);
  });

  test("tells callers afterwards that nothing was sent", async () => {
    await using at = await startTestGateway({ mcpServers: { child: statefulServer() } });
    await using client = await connectTo(at.url);
    await at.gateway.close();
    await at.gateway.close();
    await expect(client.call("child__echo", { text: "hi" })).rejects.toMatchObject({
      data: { code: "upstream.unavailable", delivery: "not_sent", server: "child" },
    });
    expect(at.pidsOf("child")).toHaveLength(1);
  });
});
