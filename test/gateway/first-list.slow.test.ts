import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { callTool, listTools } from "../support/use-provider.ts";
import { connectTo } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";
import type { ServerEntry } from "./support/servers.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-first-list-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const file = fileURLToPath(new URL("../fixtures/children/quick.mjs", import.meta.url));
const quick = (...args: readonly string[]): ServerEntry => ({
  command: process.execPath,
  args: [file, ...args],
});

/** A server that reads nothing until it is let go. */
let gates = 0;
function gated(...args: readonly string[]): { readonly entry: ServerEntry; letGo(): void; block(): void } {
  const gate = join(folder, `gate-${gates++}`);
  return {
    entry: quick(`--wait-for=${gate}`, ...args),
    letGo: () => writeFileSync(gate, ""),
    block: () => rmSync(gate, { force: true }),
  };
}

const namesOf = async ({ provider }: Gateway): Promise<readonly string[]> =>
  (await listTools(provider)).map(({ name }) => name);

const metaOf = async ({ provider }: Gateway): Promise<unknown> =>
  (await provider.list("tools", createCallContext())).meta?.["junctor/servers"];

const call = async ({ provider }: Gateway, name: string): Promise<unknown> => callTool(provider, name);

describe("with nothing remembered", () => {
  test("the first list waits for a server that is starting, and a legacy client is greeted meanwhile", async () => {
    const slow = gated();
    await using gateway = await createGateway({ mcpServers: { slow: slow.entry, fine: quick() } });
    let isListed = false;
    const listed = namesOf(gateway).then((names) => {
      isListed = true;
      return names;
    });
    await using client = await connect({ server: gateway.server }, { revision: "2025-11-25" });
    expect((await client.agreement()).mode).toEqual({ kind: "legacy", revision: "2025-11-25" });
    await expect.poll(() => gateway.status().find(({ name }) => name === "fine")?.tools).toBe(1);
    expect(isListed).toBe(false);
    slow.letGo();
    await expect(listed).resolves.toEqual(["slow__echo", "fine__echo"]);
  });

  test("the first list waits no longer than the config says, and says who is missing; so does the log", async () => {
    const slow = gated();
    await using at = await startTestGateway(
      { mcpServers: { slow: slow.entry, fine: quick() }, junctor: { firstListMs: 1 } },
      { firstListMs: 300 },
    );
    await expect.poll(() => at.gateway.status().find(({ name }) => name === "fine")?.tools).toBe(1);
    expect(await metaOf(at.gateway)).toMatchObject({ slow: { status: "starting", isListed: false } });
    // What is answered at once is not a promise.
    expect(listTools(at.gateway.provider)).toBeInstanceOf(Array);
  });

  test("a list that waits is logged once for each server", async () => {
    const slow = gated();
    const lines: unknown[] = [];
    const log = {
      debug: () => {},
      warn: () => {},
      error: () => {},
      info: (facts: object) => void lines.push(facts),
    };
    await using gateway = await createGateway({ mcpServers: { slow: slow.entry } }, { log });
    const lists = [namesOf(gateway), namesOf(gateway)];
    await expect.poll(() => lines).toContainEqual({ servers: ["slow"] });
    slow.letGo();
    await Promise.all(lists);
    expect(lines.filter((facts) => "servers" in (facts as object))).toHaveLength(1);
  });

  test("a call for a name that may be a starting server's waits for it, and any other does not", async () => {
    const slow = gated();
    await using gateway = await createGateway({ mcpServers: { slow: slow.entry } }, { firstListMs: 0 });
    const called = call(gateway, "slow__echo");
    await expect(call(gateway, "other__echo")).rejects.toMatchObject({ code: "provider.not_found" });
    slow.letGo();
    await expect(called).resolves.toMatchObject({ kind: "complete" });
    await expect(call(gateway, "slow__none")).rejects.toMatchObject({ code: "provider.not_found" });
  });

  test("a call for something of a server without a prefix, or of a renamed tool, waits too", async () => {
    const slow = gated("--tools=echo,find");
    await using gateway = await createGateway(
      {
        mcpServers: { slow: slow.entry, renamed: slow.entry },
        junctor: { servers: { slow: { prefix: false }, renamed: { tools: { find: { name: "look" } } } } },
      },
      { firstListMs: 0 },
    );
    const calls = [call(gateway, "echo"), call(gateway, "look")];
    slow.letGo();
    for (const called of calls) await expect(called).resolves.toMatchObject({ kind: "complete" });
  });

  test("a call for a server that cannot start says so, and that it was not sent", async () => {
    await using gateway = await createGateway({ mcpServers: { dead: quick("--exit") } });
    await expect(call(gateway, "dead__echo")).rejects.toMatchObject({
      code: "upstream.unavailable",
      delivery: "not_sent",
      message: expect.stringContaining("it exited with code 3") as unknown,
    });
  });

  test("a call waits once for all servers that may have its name, and not again for a list that hangs", async () => {
    const hanging = quick("--hang=tools/list");
    const own = { prefix: false, startTimeoutMs: 1000 } as const;
    const clock = createVirtualClock(Date.now());
    await using gateway = await createGateway(
      { mcpServers: { a: hanging, b: hanging }, junctor: { servers: { a: own, b: own } } },
      { clock },
    );
    await expect.poll(() => gateway.status().map(({ status }) => status)).toEqual(["up", "up"]);
    const ended = call(gateway, "unknown").catch((error: unknown) => error);
    await clock.advance(1000);
    await expect(ended).resolves.toMatchObject({ code: "provider.not_found" });
    // Nothing waits here: the clock stands still.
    await expect(call(gateway, "unknown")).rejects.toMatchObject({ code: "provider.not_found" });
  });

  test("a list waits for the server that an edit puts in the place of one that is starting", async () => {
    const slow = gated();
    await using gateway = await createGateway({ mcpServers: { a: slow.entry } });
    const listed = namesOf(gateway);
    await expect.poll(() => gateway.status()[0]?.status).toBe("starting");
    const edited = gated("--tools=edited");
    const updated = gateway.update({ mcpServers: { a: edited.entry } });
    edited.letGo();
    await expect(listed).resolves.toEqual(["a__edited"]);
    await updated;
  });

  test("a call that its caller may not make does not wait, and discloses nothing of the server", async () => {
    const slow = gated();
    await using gateway = await createGateway(
      { mcpServers: { slow: slow.entry }, junctor: { deny: ["slow__*"] } },
      { firstListMs: 0 },
    );
    await expect(call(gateway, "slow__echo")).rejects.toMatchObject({ code: "provider.not_found" });
  });
});

describe("what a server listed is remembered", () => {
  const memoryFolder = join(folder, "lists");

  test("and is listed at once when the gateway is started again, until the server confirms it", async () => {
    const tools = join(folder, "tools");
    writeFileSync(tools, "one,two");
    const server = gated(`--tools-file=${tools}`);
    const config = { mcpServers: { slow: server.entry } };
    server.letGo();
    {
      await using gateway = await createGateway(config, { memoryFolder });
      expect(await namesOf(gateway)).toEqual(["slow__one", "slow__two"]);
    }
    server.block();
    writeFileSync(tools, "one,three");
    const clock = createVirtualClock(Date.now());
    await using gateway = await createGateway(config, { memoryFolder, clock });
    expect(await namesOf(gateway)).toEqual(["slow__one", "slow__two"]);
    expect(await metaOf(gateway)).toMatchObject({ slow: { isListed: true, isConfirmed: false } });
    const changes: unknown[] = [];
    gateway.provider.onChange?.((change) => changes.push(change));
    const called = call(gateway, "slow__one");
    server.letGo();
    await expect(called).resolves.toMatchObject({ kind: "complete" });
    await expect.poll(() => namesOf(gateway)).toEqual(["slow__one", "slow__three"]);
    expect(changes).toContainEqual(expect.objectContaining({ part: "tools" }));
    await expect.poll(() => metaOf(gateway)).toBeUndefined();
  });

  test("and a call of something that is new since then waits for a server that is starting", async () => {
    const tools = join(folder, "tools-new");
    writeFileSync(tools, "one");
    const server = gated(`--tools-file=${tools}`);
    const config = { mcpServers: { slow: server.entry } };
    server.letGo();
    {
      await using gateway = await createGateway(config, { memoryFolder });
      expect(await namesOf(gateway)).toEqual(["slow__one"]);
    }
    server.block();
    writeFileSync(tools, "one,two");
    await using gateway = await createGateway(config, { memoryFolder });
    const called = call(gateway, "slow__two");
    server.letGo();
    await expect(called).resolves.toMatchObject({ kind: "complete" });
    await expect(call(gateway, "slow__three")).rejects.toMatchObject({ code: "provider.not_found" });
  });

  test("although its prompts cannot be had, and with names that are values of its variables", async () => {
    const entry = { ...quick("--tools=list_issues"), env: { TOOLSETS: "issues" } };
    {
      await using gateway = await createGateway({ mcpServers: { gh: entry } }, { memoryFolder });
      expect(await namesOf(gateway)).toEqual(["gh__list_issues"]);
    }
    const clock = createVirtualClock(Date.now());
    await using again = await createGateway({ mcpServers: { gh: entry } }, { memoryFolder, clock });
    expect(listTools(again.provider)).toMatchObject([{ name: "gh__list_issues" }]);
  });

  test("and a lazy server that was listed once stays off until it is called", async () => {
    const starts = join(folder, "starts-lazy");
    const config = {
      mcpServers: { lazy: quick(`--starts=${starts}`) },
      junctor: { servers: { lazy: { start: "lazy" } } },
    };
    {
      await using gateway = await createGateway(config, { memoryFolder });
      expect(await namesOf(gateway)).toEqual(["lazy__echo"]);
    }
    rmSync(starts);
    await using at = await startTestGateway(config, { memoryFolder });
    await using client = await connectTo(at.url);
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["lazy__echo"]);
    expect(await client.listResources()).toEqual([]);
    expect(existsSync(starts)).toBe(false);
    await client.call("lazy__echo");
    expect(readFileSync(starts, "utf8").trim().split("\n")).toHaveLength(1);
  });
});

test("with every list remembered, servers start one at a time until a client had time to list", async () => {
  const memoryFolder = join(folder, "gentle");
  const starts = join(folder, "gentle-starts");
  const servers = ["a", "b", "c"].map((name) => ({
    name,
    ...gated(`--tools=${name}`, `--starts=${starts}`),
  }));
  const config = { mcpServers: Object.fromEntries(servers.map(({ name, entry }) => [name, entry])) };
  const countStarts = (): number => readFileSync(starts, "utf8").trim().split("\n").length;
  for (const { letGo } of servers) letGo();
  {
    await using gateway = await createGateway(config, { memoryFolder });
    expect(await namesOf(gateway)).toHaveLength(3);
  }
  rmSync(starts);
  for (const { block } of servers) block();
  const clock = createVirtualClock(Date.now());
  await using gateway = await createGateway(config, { memoryFolder, clock });
  expect(await namesOf(gateway)).toHaveLength(3);
  await expect.poll(() => existsSync(starts)).toBe(true);
  const queued = { status: "starting", trouble: "it is started after other servers, which are starting now" };
  expect(gateway.status()).toMatchObject([{ name: "a" }, { name: "b", ...queued }, { name: "c", ...queued }]);
  expect(countStarts()).toBe(1);
  await clock.advance(1000);
  await expect.poll(countStarts).toBe(3);
  for (const { letGo } of servers) letGo();
});

describe("a server that was waited for without success", () => {
  const memoryFolder = join(folder, "missed");
  const standStill = () => createVirtualClock(Date.now());

  test("is not waited for at the next start, is announced when it comes, and is remembered from then on", async () => {
    const slow = gated();
    const config = { mcpServers: { calc: quick(), slow: slow.entry } };
    {
      const clock = standStill();
      await using gateway = await createGateway(config, { memoryFolder, clock });
      const listed = namesOf(gateway);
      await expect.poll(() => gateway.status()[0]?.tools).toBe(1);
      await clock.advance(20_000);
      await expect(listed).resolves.toEqual(["calc__echo"]);
    }
    {
      // The clock stands still: whatever waited for the server would wait forever.
      await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
      expect(listTools(gateway.provider)).toMatchObject([{ name: "calc__echo" }]);
      expect(await metaOf(gateway)).toMatchObject({ slow: { isListed: false } });
      await gateway.ready;
      const changes: unknown[] = [];
      gateway.provider.onChange?.((change) => changes.push(change));
      slow.letGo();
      await expect.poll(() => namesOf(gateway)).toEqual(["calc__echo", "slow__echo"]);
      expect(changes).toContainEqual(expect.objectContaining({ part: "tools", origin: "slow" }));
    }
    slow.block();
    await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
    expect(await namesOf(gateway)).toEqual(["calc__echo", "slow__echo"]);
  });

  test("because it failed, is not waited for either, though it does not fail this time", async () => {
    const tools = join(folder, "tools-of-failing");
    const server = gated(`--tools-file=${tools}`);
    const config = { mcpServers: { failing: server.entry } };
    {
      await using gateway = await createGateway(config, { memoryFolder });
      await gateway.ready;
      expect(gateway.status()[0]).toMatchObject({ code: "exited" });
    }
    writeFileSync(tools, "echo");
    await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
    expect(await namesOf(gateway)).toEqual([]);
    server.letGo();
    await expect.poll(() => namesOf(gateway)).toEqual(["failing__echo"]);
  });

  test("because it fails, and is the last of many, is waited for once and only until it fails", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`fine${index}`, quick(`--${index}`)]),
    );
    const gate = gated();
    const starts = join(folder, "starts-of-crashing");
    const config = {
      mcpServers: { first: gate.entry, ...many, crashing: quick("--exit", `--starts=${starts}`) },
      junctor: { maxStarts: 1 },
    };
    const names = ["first", ...Object.keys(many)].map((name) => `${name}__echo`);
    gate.letGo();
    {
      // The clock stands still: a list that waited for another try of the server would wait forever.
      await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
      await expect(namesOf(gateway)).resolves.toEqual(names);
    }
    rmSync(starts);
    gate.block();
    await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
    expect(listTools(gateway.provider)).toMatchObject(names.map((name) => ({ name })));
    // It does not wait for its turn, which would not come: the first one keeps the only slot.
    await expect.poll(() => existsSync(starts)).toBe(true);
    gate.letGo();
  });

  test("is remembered though the client gave up and ended the gateway before the time was over", async () => {
    const slow = gated();
    const config = { mcpServers: { slow: slow.entry } };
    {
      await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
      void namesOf(gateway).catch(() => {});
    }
    await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
    expect(await namesOf(gateway)).toEqual([]);
  });

  test("but was listed by no caller in a run that ended early, is waited for as at first", async () => {
    const slow = gated();
    const config = { mcpServers: { slow: slow.entry } };
    {
      await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
      await expect.poll(() => gateway.status()[0]?.status).toBe("starting");
    }
    await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
    const listed = namesOf(gateway);
    slow.letGo();
    await expect(listed).resolves.toEqual(["slow__echo"]);
  });

  test("is started before the others", async () => {
    const starts = ["fine", "late"].map((name) => join(folder, `order-${name}`));
    const countOf = (file: string): number =>
      existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").length : 0;
    const late = gated(`--starts=${starts[1]}`);
    const mcpServers = { fine: quick(`--starts=${starts[0]}`), late: late.entry };
    const config = { mcpServers, junctor: { maxStarts: 1 } };
    {
      const clock = standStill();
      await using gateway = await createGateway(config, { memoryFolder, clock });
      await expect.poll(() => starts.map(countOf)).toEqual([1, 1]);
      await clock.advance(20_000);
      await gateway.ready;
    }
    await using gateway = await createGateway(config, { memoryFolder, clock: standStill() });
    await expect.poll(() => countOf(starts[1] ?? "")).toBe(2);
    expect(countOf(starts[0] ?? "")).toBe(1);
    late.letGo();
    await expect.poll(() => gateway.status().map(({ status }) => status)).toEqual(["up", "up"]);
  });
});

describe("a start that makes progress", () => {
  test.each(["--chatter", "--burn"])(
    "is not ended when it takes longer than startTimeoutMs: %s",
    async (flag) => {
      const starts = join(folder, `starts${flag}`);
      const slow = gated(flag, `--starts=${starts}`);
      await using gateway = await createGateway({
        mcpServers: { slow: slow.entry },
        junctor: { servers: { slow: { startTimeoutMs: 3000 } } },
      });
      // One that says nothing is given up: by then the other one would have been too.
      const mute = gated(`--starts=${starts}-mute`);
      await using beside = await createGateway({
        mcpServers: { mute: mute.entry },
        junctor: { servers: { mute: { startTimeoutMs: 3000 } } },
      });
      await expect.poll(() => beside.status()[0]?.status).toBe("down");
      expect(beside.status()[0]?.trouble).toContain("no answer to initialize within 3000 ms");
      slow.letGo();
      await expect.poll(() => gateway.status()[0]?.status).toBe("up");
      expect(readFileSync(starts, "utf8").trim().split("\n")).toHaveLength(1);
    },
  );
});
