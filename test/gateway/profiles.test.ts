// Profiles with search and caps: one view decides what a caller finds, lists and calls.
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { startGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { RunningGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { runs } from "../support/runs.ts";
import { toProvider } from "../support/use-provider.ts";

const servers = ["alpha", "beta", "gamma"] as const;
const verbs = ["read", "delete"] as const;
const things = ["note", "user"] as const;

function createLocal(server: string): Registry {
  const registry = createRegistry();
  for (const verb of verbs)
    for (const thing of things)
      registry.register(
        `${server}_${verb}_${thing}`,
        {
          description: `Can ${verb} a ${thing} of ${server}.`,
          annotations: { readOnlyHint: verb === "read" },
        },
        () => `${server} ${verb} ${thing}`,
      );
  return registry;
}

const keyOf = (name: string): string =>
  createHash("sha256").update(`${name}-0123456789-abcdefgh`).digest("hex");

async function start(junctor: object, folder?: string): Promise<RunningGateway> {
  const config = parseConfigValue(
    { mcpServers: {}, junctor },
    { file: "test", env: {}, ...(folder === undefined ? {} : { folder }) },
  );
  const local = Object.fromEntries(servers.map((server) => [server, createLocal(server)]));
  const gateway = await startGateway(config, { local });
  await gateway.ready;
  return gateway;
}

const textOf = (result: { readonly content: readonly { readonly type: string }[] }): string =>
  result.content.map((block) => (block as { readonly text?: string }).text ?? "").join("\n");

interface Seen {
  readonly listed: readonly string[];
  readonly found: readonly string[];
  readonly described: readonly string[];
  readonly called: readonly string[];
}

/** Everything a caller finds, describes and calls through a search, tried with every spelling; and what it lists without one. */
async function look(searching: Client, listing: Client, spellings: readonly string[]): Promise<Seen> {
  const listed = (await listing.listTools()).map(({ name }) => name).toSorted();
  const found = new Set<string>();
  const described = new Set<string>();
  const called = new Set<string>();
  for (const spelling of spellings) {
    const answer = textOf(await searching.callTool("search_tools", { query: spelling, limit: 20 }));
    for (const [name] of answer.matchAll(/[\w-]+(?=\(|, |$)/gm))
      if (spellings.includes(name)) found.add(name);
    const [definition] = (await searching.callTool("describe_tools", { names: [spelling] })).content;
    if ((definition as { readonly text: string }).text.startsWith("{")) described.add(spelling);
    const result = await searching.callTool("call_tool", { name: spelling });
    if (result.isError !== true) called.add(spelling);
    else expect(textOf(result)).toContain("Unknown tool");
    const direct = await searching.callTool(spelling).then(
      () => true,
      () => false,
    );
    expect([spelling, direct]).toEqual([spelling, called.has(spelling)]);
  }
  return {
    listed,
    found: [...found].toSorted(),
    described: [...described].toSorted(),
    called: [...called].toSorted(),
  };
}

const names = servers.flatMap((server) =>
  verbs.flatMap((verb) => things.map((thing) => `${server}_${verb}_${thing}`)),
);

test("a caller finds, describes and calls what it lists, for any config, caller and spelling", async () => {
  const glob = fc.oneof(
    fc.constantFrom(
      ...servers.map((server) => `${server}_*`),
      ...verbs.map((verb) => `*_${verb}_*`),
      "*",
      "*_user",
    ),
    fc.constantFrom(...names),
  );
  const globs = fc.array(glob, { maxLength: 2 });
  const rules = fc
    .record({ allow: globs, deny: globs })
    .map(({ allow, deny }) => ({ ...(allow.length === 0 ? {} : { allow }), deny }));
  const rename = fc.dictionary(
    fc.constantFrom(...names),
    fc.constantFrom("short", "other", ...names.slice(0, 3)),
    { maxKeys: 3 },
  );
  const profile = fc.record({
    rules,
    rename,
    pin: fc.subarray(names, { maxLength: 2 }),
    capped: fc.boolean(),
    bound: fc.array(
      fc.record({
        kind: fc.constantFrom("allow", "deny"),
        names: fc.array(glob, { minLength: 1, maxLength: 2 }),
        condition: fc.constantFrom({}, { when: "caller.name == 'ada'" }, { unless: "caller.name == 'ada'" }),
        place: fc.constantFrom({}, { profiles: ["found", "listed"] }, { profiles: ["other"] }),
      }),
      { maxLength: 2 },
    ),
  });
  await fc.assert(
    fc.asyncProperty(
      rules,
      rules,
      profile,
      async (general, ofKey, { rules: ofProfile, rename: all, pin, capped, bound }) => {
        const renamed = Object.fromEntries(
          new Map(Object.entries(all).map(([old, name]) => [name, old])).entries(),
        );
        const shared = {
          ...ofProfile,
          rename: Object.fromEntries(Object.entries(renamed).map(([name, old]) => [old, name])),
          pin,
          ...(capped ? { maxResultTokens: 1000 } : {}),
        };
        const junctor = {
          ...general,
          keys: { ada: { sha256: keyOf("ada"), ...ofKey }, bob: { sha256: keyOf("bob") } },
          rules: bound.map(({ kind, names: of, condition, place }) => ({
            [kind]: of,
            ...condition,
            ...place,
          })),
          profiles: { found: { ...shared, tools: "search" }, listed: shared, other: {} },
        };
        await using gateway = await start(junctor);
        const spellings = [
          ...names,
          "short",
          "other",
          names[0]!.toUpperCase(),
          "constructor",
          "__proto__",
          "read_note",
        ];
        for (const caller of ["ada", "bob"]) {
          await using searching = await connect({ server: gateway.serverAt("found")!, caller });
          await using listing = await connect({ server: gateway.serverAt("listed")!, caller });
          const { listed, found, described, called } = await look(searching, listing, spellings);
          const expected = listed.filter((name) => name !== "read_result");
          expect({ found, described, called }).toEqual({
            found: expected,
            described: expected,
            called: expected,
          });
          if (bound.some(({ kind, place }) => kind === "allow" && "profiles" in place)) continue;
          // A profile takes away: what is not renamed is in the gateway's own list.
          await using plain = await connect({ server: gateway.server, caller });
          const own = (await plain.listTools()).map(({ name }) => name);
          expect(
            expected.filter((name) => !own.includes(name) && !own.includes(renamed[name] ?? "")),
          ).toEqual([]);
        }
      },
    ),
    { numRuns: runs(30) },
  );
});

describe.each(["2026-07-28", "2025-11-25", "2025-03-26"] as const)("over %s", (revision) => {
  test("a search profile lists a small surface, finds and calls", async () => {
    await using gateway = await start({
      profiles: { small: { tools: "search", pin: ["beta_read_note"], deny: ["gamma_*"] } },
      servers: {},
    });
    await using client = await connect({ server: gateway.serverAt("small")! }, { revision });
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "search_tools",
      "describe_tools",
      "call_tool",
      "beta_read_note",
    ]);
    expect(textOf(await client.callTool("search_tools", { query: "erase a user" }))).toMatch(
      /^\w+_delete_user\(/,
    );
    expect(textOf(await client.callTool("call_tool", { name: "alpha_read_user" }))).toBe("alpha read user");
  });

  test("auto shows all tools to clients that defer them, and a search to others", async () => {
    await using gateway = await start({ profiles: { some: { tools: "auto", budget: 10 } } });
    const listed = async (name: string): Promise<readonly string[]> => {
      const clientInfo = { name, version: "1.0.0" };
      await using client = await connect({ server: gateway.serverAt("some")! }, { revision, clientInfo });
      return (await client.listTools()).map((tool) => tool.name);
    };
    expect(await listed("claude-code")).toEqual(names);
    expect(await listed("zed")).toEqual(["search_tools", "describe_tools", "call_tool"]);
  });
});

test("records, limits and hooks see the inner tool, and searches by their own names", async () => {
  const folder = await mkdtemp(join(tmpdir(), "junctor-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const gateway = await start(
    {
      profiles: { small: { tools: "search" } },
      audit: join(folder, "audit.jsonl"),
      limits: { tools: { alpha_read_note: { callsPerMinute: 1 } } },
    },
    folder,
  );
  await using client = await connect({ server: gateway.serverAt("small")! });
  await client.callTool("search_tools", { query: "note" });
  await client.callTool("call_tool", { name: "alpha_read_note" });
  const limited = await client.callTool("call_tool", { name: "alpha_read_note" });
  expect(limited.isError).toBe(true);
  await client.close();
  await gateway.close();
  const lines = (await readFile(join(folder, "audit.jsonl"), "utf8")).trim().split("\n");
  const tools = lines
    .map((line) => (JSON.parse(line) as { readonly tool?: string }).tool)
    .filter((tool) => tool !== undefined);
  expect(tools).toEqual(["search_tools", "alpha_read_note", "alpha_read_note"]);
});

test("only servers that are trusted have their hints believed", async () => {
  const local = { alpha: createLocal("alpha"), beta: createLocal("beta") };
  const mcpServers = { alpha: { command: "not-started" }, beta: { command: "not-started" } };
  const config = parseConfigValue(
    {
      mcpServers,
      junctor: {
        profiles: { small: { tools: "search" } },
        servers: { alpha: { trustHints: true, prefix: false }, beta: { prefix: false } },
      },
    },
    { file: "test", env: {} },
  );
  await using gateway = await startGateway(config, { local });
  await gateway.ready;
  await using client = await connect({ server: gateway.serverAt("small")! });
  expect((await client.listTools()).map(({ name }) => name)).toContain("call_read_tool");
  expect(textOf(await client.callTool("call_read_tool", { name: "alpha_read_note" }))).toBe(
    "alpha read note",
  );
  for (const name of ["alpha_delete_note", "beta_read_note"])
    expect((await client.callTool("call_read_tool", { name })).isError).toBe(true);
});

describe("a name that looks like that of another server", () => {
  const readOnly = { annotations: { readOnlyHint: true } };
  const wipe = { name: "good__wipe", inputSchema: { type: "object" }, ...readOnly } as const;
  /** A server that lists a tool to some callers only. */
  const odd = toProvider(
    ({ capabilities }) => (capabilities.extensions === undefined ? [] : [wipe]),
    () => ({ kind: "complete", result: RawJson.fromValue({ content: [] }) }),
  );

  test.each(["__", "."])("does not have its hints believed, with the separator %s", async (separator) => {
    await using listener = await listenHttp(createServer(odd, { name: "odd", version: "1" }), { port: 0 });
    const good = createRegistry();
    good.register("read__all", readOnly, () => "all");
    const config = parseConfigValue(
      {
        mcpServers: {
          good__one: { command: "not-started" },
          good: { command: "not-started" },
          odd: { url: `http://127.0.0.1:${listener.port}/mcp` },
        },
        junctor: {
          separator,
          profiles: { small: { tools: "search" } },
          servers: {
            good__one: { trustHints: true, prefix: "g" },
            good: { trustHints: true, prefix: "h" },
            odd: { prefix: false },
          },
        },
      },
      { file: "test", env: {} },
    );
    await using gateway = await startGateway(config, { local: { good__one: good, good: createRegistry() } });
    await gateway.ready;
    await using client = await connect({ server: gateway.serverAt("small")! }, { views: true });
    await expect
      .poll(async () => textOf(await client.callTool("search_tools", { query: "wipe" })))
      .toContain("good__wipe");
    expect(textOf(await client.callTool("call_read_tool", { name: "good__wipe" }))).toContain(
      "is not known to only read",
    );
    expect(textOf(await client.callTool("search_tools", { server: "odd" }))).toBe("good__wipe");
    expect(textOf(await client.callTool("search_tools", { server: "good__one" }))).toBe(
      `g${separator}read__all`,
    );
    expect(textOf(await client.callTool("call_read_tool", { name: `g${separator}read__all` }))).toBe("all");
  });
});

test("an edit of the config changes the surface of a client that stays", async () => {
  const profiles = { small: { tools: "search" } };
  await using gateway = await start({ profiles });
  await using client = await connect({ server: gateway.serverAt("small")! });
  expect(await client.listTools()).toHaveLength(3);
  await gateway.update({
    mcpServers: {},
    junctor: { profiles: { small: { tools: "search", pin: ["alpha_read_note"], maxResultTokens: 500 } } },
  });
  await expect
    .poll(async () => (await client.listTools()).map(({ name }) => name))
    .toEqual(["search_tools", "describe_tools", "call_tool", "alpha_read_note", "read_result"]);
});
