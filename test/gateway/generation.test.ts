// An edit of the config is taken whole, or nothing of it.
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import type { Notice, Provider } from "../../packages/core/src/provider/provider.ts";
import { createGateway, type Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { runs } from "../support/runs.ts";
import { listTools, callTool } from "../support/use-provider.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "junctor-generation-"));
  await writeFile(join(folder, "good.mjs"), "export default { afterCall() {} };");
  await writeFile(join(folder, "throws.mjs"), "export default () => { throw new Error('no') };");
  await writeFile(join(folder, "misspelt.mjs"), "export default { beforeCall() {}, aferCall() {} };");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const callers = ["ada", "bob"] as const;
const keys = Object.fromEntries(callers.map((name) => [name, { sha256: sha256(name) }]));

function createNotes(): Registry {
  const [prompts, resources] = [createPromptRegistry(), createResourceRegistry()];
  const registry = createRegistry({ prompts, resources });
  for (const name of ["read", "write", "drop"]) {
    registry.register(name, { description: `from ada@example.com, ${name}` }, () => `${name} `.repeat(2000));
    prompts.register(name, {}, () => name);
    resources.register(`note:${name}`, { name }, () => name);
  }
  return registry;
}

const first = {
  mcpServers: { notes: { command: "unused" }, tasks: { command: "unused" } },
  junctor: {
    keys,
    audit: "audit.jsonl",
    middleware: ["good.mjs"],
    redact: ["email"],
    deny: ["*drop"],
    rules: [{ deny: ["notes__write"], when: "caller.name == 'bob'" }],
    profiles: { small: { rename: { notes__read: "look" }, tools: "search", maxResultTokens: 1000 } },
  },
};

async function start(): Promise<Gateway> {
  const local = { notes: createNotes(), tasks: createNotes() };
  const gateway = await createGateway(first, { local, folder });
  await gateway.ready;
  return gateway;
}

/** All that callers see at every entrance, and what their calls answer, as one text. */
async function seenBy(gateway: Gateway): Promise<string> {
  const seen: unknown[] = [gateway.status().map(({ name, status }) => [name, status]), gateway.collisions()];
  for (const caller of callers) {
    for (const name of [undefined, "small", "notes", "tasks", "more"]) {
      const server = name === undefined ? gateway.server : gateway.mounts.at(name, caller);
      if (server === undefined) {
        seen.push([caller, name]);
        continue;
      }
      await using client = await connect({ server, caller });
      const tools = await client.listTools();
      const calls = tools.map(async (tool) => client.callTool(tool.name).catch(String));
      const answers = (await Promise.all(calls)).map((answer) =>
        JSON.stringify(answer).replaceAll(/"id\\*":\\*"[^"\\]+|junctor:[^"\\]+/g, "kept result"),
      );
      const others = [client.listPrompts(), client.listResources(), client.listResourceTemplates()];
      seen.push([caller, name, await client.agreement(), tools, await Promise.all(others), answers]);
    }
  }
  return JSON.stringify(seen);
}

/** Something for each step of making a generation to fail on, in the order of the steps. */
const bad: { readonly [step: string]: object } = {
  "reading the config": { allows: ["*"] },
  "who needs proof": { keys: {} },
  "compiling the rules": { rules: [{ allow: ["*"], when: "caller.name ==" }] },
  "reading the lock": { lock: { file: "nowhere.json", mode: "enforce" } },
  "loading a module": { middleware: ["nowhere.mjs"] },
  "making a middleware": { middleware: ["throws.mjs"] },
  "opening the audit file": { audit: "." },
  "putting the layers together": { middleware: ["misspelt.mjs"] },
};

describe("an edit that fails", () => {
  test.each(Object.entries(bad))("at %s changes nothing that callers see", async (_, part) => {
    await using gateway = await start();
    const before = await seenBy(gateway);
    const listings = callers.map((caller) => gateway.provider.list("tools", createCallContext({ caller })));
    const edited = {
      mcpServers: { ...first.mcpServers, more: { command: "unused" } },
      junctor: { ...first.junctor, deny: [], profiles: {}, separator: ".", redact: [], ...part },
    };
    await expect(gateway.update(edited)).rejects.toBeInstanceOf(Error);
    // Not even made again.
    for (const [index, caller] of callers.entries())
      expect(gateway.provider.list("tools", createCallContext({ caller }))).toBe(listings[index]);
    expect(await seenBy(gateway)).toBe(before);
  });

  test("changes nothing, whatever else it would change", { timeout: 120_000 }, async () => {
    const globs = fc.uniqueArray(fc.constantFrom("*read", "*write", "notes__*", "*"), {
      minLength: 1,
      maxLength: 2,
    });
    const good = fc.record(
      {
        allow: globs,
        deny: globs,
        separator: fc.constantFrom("__", "."),
        redact: fc.constantFrom([], ["email"]),
        limits: fc.constantFrom({}, { callsPerMinute: 100_000 }, { callTimeoutMs: 60_000 }),
        middleware: fc.constantFrom([], ["good.mjs"]),
        audit: fc.constantFrom("audit.jsonl", "other.jsonl", { file: "audit.jsonl", maxBytes: 1_000_000 }),
        profiles: fc.dictionary(
          fc.constantFrom("small", "large"),
          fc.record({ allow: globs, tools: fc.constantFrom("all", "search", "auto") }),
        ),
        servers: fc.dictionary(fc.constantFrom("notes", "tasks"), fc.record({ deny: globs })),
      },
      { requiredKeys: [] },
    );
    const edits = fc.array(fc.tuple(good, good, fc.constantFrom(...Object.values(bad))), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(edits, async (all) => {
        await using gateway = await start();
        for (const [taken, wanted, part] of all) {
          const { mcpServers } = first;
          await gateway.update({ mcpServers, junctor: { keys, ...taken } });
          const before = await seenBy(gateway);
          await expect(
            gateway.update({ mcpServers, junctor: { keys, ...wanted, ...part } }),
          ).rejects.toBeInstanceOf(Error);
          expect(await seenBy(gateway)).toBe(before);
        }
      }),
      { numRuns: runs(100) },
    );
  });

  test("leaves the way free for the next, and those that come at once are taken in turn", async () => {
    await using gateway = await start();
    const withDeny = (deny: readonly string[], more: object = {}): object => ({
      ...first,
      junctor: { ...first.junctor, deny, ...more },
    });
    const ends = await Promise.allSettled([
      gateway.update(withDeny(["*read"])),
      gateway.update(withDeny([], bad["putting the layers together"])),
      gateway.update(withDeny(["*write"])),
    ]);
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    const tools = await listTools(gateway.provider, createCallContext({ caller: "ada" }));
    expect(tools.map(({ name }) => name)).toEqual([
      "notes__read",
      "notes__drop",
      "tasks__read",
      "tasks__drop",
    ]);
  });
});

test("a call that is underway ends in the generation in which it began", async () => {
  const registry = createRegistry();
  let answer: (text: string) => void = () => {};
  registry.register("ask", {}, () => new Promise<string>((resolve) => (answer = resolve)));
  const config = (junctor: object): object => ({ mcpServers: {}, junctor });
  await using gateway = await createGateway(config({ redact: ["email"] }), {
    local: { own: registry },
    folder,
  });
  await gateway.ready;
  const outcome = callTool(gateway.provider, "ask");
  await gateway.update(config({ deny: ["ask"] }));
  answer("from ada@example.com");
  expect(await outcome).toMatchObject({ kind: "complete" });
  expect(JSON.stringify(await outcome)).not.toContain("ada@example.com");
  await expect((async () => callTool(gateway.provider, "ask"))()).rejects.toThrow("not found");
});

describe("a watch over a swap", () => {
  const uri = "note:read";
  const target = { part: "resources", name: uri, ref: undefined } as const;
  const context = createCallContext({ caller: "ada" });

  /** A gateway with one resource, which counts who watches it. */
  async function startWatched() {
    const resources = createResourceRegistry();
    resources.register(uri, { name: "read" }, () => "read");
    const registry = createRegistry({ resources });
    const counts = { now: 0, fewest: Infinity };
    const watched = {
      ...registry,
      watch: async (...given: Parameters<NonNullable<Provider["watch"]>>) => {
        const stop = await registry.watch?.(...given);
        counts.now++;
        return () => {
          counts.fewest = Math.min(counts.fewest, --counts.now);
          stop?.();
        };
      },
    };
    const gateway = await createGateway({ mcpServers: {}, junctor: { keys } }, { local: { own: watched } });
    await gateway.ready;
    const heard: Notice[] = [];
    await gateway.provider.list("resources", context);
    await gateway.provider.watch?.(target, context, (notice) => heard.push(notice));
    return { gateway, counts, heard, tell: () => resources.updated(uri) };
  }

  test("goes on, and is at no time without a watcher at the server", async () => {
    const { gateway, counts, heard, tell } = await startWatched();
    await using _ = gateway;
    for (const deny of [["x"], ["y"], []]) await gateway.update({ mcpServers: {}, junctor: { keys, deny } });
    await expect.poll(() => counts).toEqual({ now: 1, fewest: 1 });
    tell();
    await expect.poll(() => heard).toEqual([{ kind: "updated", uri }]);
  });

  test("ends for a caller that may no longer read, and is there again when it may", async () => {
    const { gateway, counts, heard, tell } = await startWatched();
    await using _ = gateway;
    await gateway.update({ mcpServers: {}, junctor: { keys, deny: ["own__note:*"] } });
    await expect.poll(() => counts.now).toBe(0);
    tell();
    await gateway.update({ mcpServers: {}, junctor: { keys } });
    await expect.poll(() => counts.now).toBe(1);
    expect(heard).toEqual([]);
    tell();
    await expect.poll(() => heard).toEqual([{ kind: "updated", uri }]);
  });

  test("ends for a caller whose key is taken away", async () => {
    const { gateway, counts, heard, tell } = await startWatched();
    await using _ = gateway;
    await gateway.update({ mcpServers: {}, junctor: { keys: { bob: keys["bob"] } } });
    await expect.poll(() => counts.now).toBe(0);
    tell();
    await new Promise((resolve) => setImmediate(resolve));
    expect(heard).toEqual([]);
  });
});
