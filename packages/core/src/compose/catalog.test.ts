import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  callerNamed,
  createCatalogOf,
  createSource,
  type FakeSource,
  setSources,
  toListed,
  toTools,
} from "../../../../test/support/fake-source.ts";
import { runs } from "../../../../test/support/runs.ts";
import { RawJson } from "../json/raw.ts";
import { definitionOf, fromDefinition } from "../mcp/definition.ts";
import type { Tool } from "../mcp/types.ts";
import type { Catalog } from "./catalog.ts";
import type { Collision } from "./claims.ts";
import { allowAll } from "./view.ts";

interface Made {
  readonly catalog: Catalog;
  readonly reported: Collision[];
  readonly names: (caller?: string) => readonly string[];
  readonly ownerOf: (name: string, caller?: string) => string | undefined;
}

function make(...sources: readonly FakeSource[]): Made {
  const reported: Collision[] = [];
  const catalog = createCatalogOf(sources, (collision) => reported.push(collision));
  return {
    catalog,
    reported,
    names: (caller) => catalog.snapshotFor(callerNamed(caller)).tools.map((claim) => claim.key),
    ownerOf: (name, caller) =>
      catalog.snapshotFor(callerNamed(caller)).tools.find((claim) => claim.key === name)?.server,
  };
}

const bare = { prefix: false } as const;

describe("names", () => {
  test("are those of the server after its prefix, in the order of the config", () => {
    const { names } = make(
      createSource("github", { tools: toTools("search", "issue") }),
      createSource("files", { tools: toTools("read") }, { prefix: "fs" }),
      createSource("demo", { tools: toTools("echo") }, bare),
    );
    expect(names()).toEqual(["github__search", "github__issue", "fs__read", "echo"]);
  });

  test("are put into definitions when these are listed, and not for a call", () => {
    let looks = 0;
    const tools = toTools(...Array.from({ length: 100 }, (_, index) => `tool${index}`));
    const watched = tools.map((tool) =>
      Object.defineProperty({ ...tool }, "description", {
        enumerable: true,
        get: () => {
          looks++;
          return "text";
        },
      }),
    );
    const { catalog } = make(createSource("big", { tools: watched }));
    const view = catalog.viewFor(callerNamed("ann"), allowAll);
    expect(view.toolClaims.get("big__tool7")).toMatchObject({ server: "big", ownName: "tool7" });
    expect(looks).toBe(0);
    expect(view.tools[7]).toMatchObject({ name: "big__tool7", description: "text" });
    expect(looks).toBeGreaterThanOrEqual(100);
    expect(view.tools).toBe(view.tools);
  });

  test("that are too long are cut and told apart, each depending on nothing but itself", () => {
    const long = "a".repeat(80);
    const one = make(createSource("github", { tools: toTools(`${long}1`, `${long}2`) })).names();
    const two = make(
      createSource("x", { tools: toTools("y") }),
      createSource("github", { tools: toTools(`${long}2`) }),
    );
    expect(new Set(one).size).toBe(2);
    for (const name of one) expect(name).toMatch(/^github__a+_[0-9a-f]{8}$/);
    expect(one.every((name) => name.length === 64)).toBe(true);
    expect(two.names()[1]).toBe(one[1]);
  });

  test("without a prefix are the server's own, as far as clients take them", () => {
    const fine = ["files.read", "a/b", "under_score-dash", "x".repeat(64)];
    const long = "a".repeat(80);
    const odd = ["say hello", "größe", `${long}1`, `${long}2`, ""];
    const prompts = [{ name: "daily summary" }];
    const { catalog, names } = make(createSource("demo", { tools: toTools(...fine, ...odd), prompts }, bare));
    expect(names().slice(0, fine.length)).toEqual(fine);
    const changed = names().slice(fine.length);
    expect(changed.map((name) => name.slice(0, -9))).toEqual([
      "say_hello",
      "gr__e",
      "a".repeat(55),
      "a".repeat(55),
      "_",
    ]);
    for (const name of changed) expect(name).toMatch(/^[A-Za-z0-9_-]{1,55}_[0-9a-f]{8}$/);
    expect(new Set(changed).size).toBe(odd.length);
    const snapshot = catalog.snapshotFor(callerNamed());
    expect(snapshot.tools.map(({ ownName }) => ownName)).toEqual([...fine, ...odd]);
    expect(snapshot.prompts[0]?.key).toMatch(/^daily_summary_[0-9a-f]{8}$/);
    expect(snapshot.prompts[0]?.ownName).toBe("daily summary");
  });

  test("follow the rules: another name, another description, hidden, allowed, denied", () => {
    const { catalog, names } = make(
      createSource(
        "github",
        { tools: toTools("search", "secret", "issue_read", "issue_delete", "other", "constructor") },
        {
          tools: { search: { name: "find", description: "Finds." }, secret: { hide: true } },
          allow: ["search", "secret", "issue_*", "constructor"],
          deny: ["*_delete"],
        },
      ),
    );
    expect(names()).toEqual(["find", "github__issue_read", "github__constructor"]);
    const [found] = catalog.snapshotFor(callerNamed()).tools;
    expect(found).toMatchObject({
      server: "github",
      ownName: "search",
      item: { name: "find", description: "Finds." },
    });
  });

  test("of prompts are prefixed, URIs are not", () => {
    const { catalog } = make(
      createSource("a", {
        prompts: [{ name: "p" }],
        resources: [{ name: "r", uri: "x:1" }],
        templates: [{ name: "t", uriTemplate: "x:{n}" }],
      }),
    );
    const { prompts, resources, templates } = catalog.snapshotFor(callerNamed());
    expect(prompts.map(({ key, ownName, item }) => [key, ownName, item.name])).toEqual([
      ["a__p", "p", "a__p"],
    ]);
    expect(resources.map(({ key }) => key)).toEqual(["x:1"]);
    expect(templates.map(({ key }) => key)).toEqual(["x:{n}"]);
  });

  test("are put into definitions that stay what they were, byte for byte", () => {
    const text = '{"name":"n","x":1.0,"inputSchema":{"type":"object","maximum":12345678901234567890}}';
    const tool = fromDefinition<Tool>(RawJson.fromText(text));
    const { catalog } = make(createSource("a", { tools: [tool] }));
    const [claim] = catalog.snapshotFor(callerNamed()).tools;
    expect(definitionOf(claim?.item ?? {}).text).toBe(text.replace('"n"', '"a__n"'));
  });
});

describe("collisions", () => {
  test("are settled for the first in the config, and reported once", () => {
    const { catalog, reported, ownerOf } = make(
      createSource("a", { tools: toTools("x") }, bare),
      createSource("b", { tools: toTools("x") }, bare),
    );
    expect(ownerOf("x")).toBe("a");
    catalog.outdated();
    catalog.snapshotFor(callerNamed());
    catalog.snapshotFor(callerNamed("ann"));
    expect(reported).toEqual([{ key: "x", owner: "a", others: ["b"] }]);
    expect(catalog.snapshotFor(callerNamed()).collisions).toEqual(reported);
  });

  test("within a server, by a rule, are reported too", () => {
    const { reported, names } = make(
      createSource("a", { tools: toTools("x", "y") }, { ...bare, tools: { y: { name: "x" } } }),
    );
    expect(names()).toEqual(["x"]);
    expect(reported).toEqual([{ key: "x", owner: "a", others: ["a"] }]);
  });

  test("of resources are not reported", () => {
    const resources = [{ name: "r", uri: "x:1" }];
    const { catalog, reported } = make(createSource("a", { resources }), createSource("b", { resources }));
    expect(catalog.snapshotFor(callerNamed()).resources.map(({ server }) => server)).toEqual(["a", "b"]);
    expect(reported).toEqual([]);
  });
});

describe("owners", () => {
  test("change while the gateway starts, and no more once it is settled", () => {
    const first = createSource("first", {}, bare);
    const second = createSource("second", { tools: toTools("x") }, bare);
    const early = make(first, second);
    expect(early.ownerOf("x")).toBe("second");
    first.listed = toListed({ tools: toTools("x") });
    early.catalog.outdated();
    expect(early.ownerOf("x")).toBe("first");

    first.listed = toListed();
    const late = make(first, second);
    late.catalog.settle();
    expect(late.ownerOf("x")).toBe("second");
    first.listed = toListed({ tools: toTools("x") });
    late.catalog.outdated();
    expect(late.ownerOf("x")).toBe("second");
    expect(late.reported.at(-1)).toEqual({ key: "x", owner: "second", others: ["first"] });
  });

  test("are the same for callers of every kind, whenever they first look", () => {
    const first = createSource("first", {}, bare);
    const second = createSource("second", { tools: toTools("x") }, bare);
    const { catalog, ownerOf } = make(first, second);
    catalog.settle();
    expect(ownerOf("x", "early kind")).toBe("second");
    first.listed = toListed({ tools: toTools("x") });
    catalog.outdated();
    expect(ownerOf("x", "late kind")).toBe("second");
    expect(ownerOf("x")).toBe("second");
    expect(ownerOf("x", "early kind")).toBe("second");
  });

  test("that are removed make room", () => {
    const first = createSource("first", { tools: toTools("x") }, bare);
    const second = createSource("second", { tools: toTools("x") }, bare);
    const { catalog, ownerOf } = make(first, second);
    catalog.settle();
    expect(ownerOf("x")).toBe("first");
    setSources(catalog, [second]);
    expect(ownerOf("x")).toBe("second");
  });
});

describe("callers of another kind", () => {
  test("see what servers list for them", () => {
    const source = createSource("a", { tools: toTools("x") });
    source.special.set("k", toListed({ tools: toTools("x", "asks") }));
    const { names } = make(source);
    expect(names()).toEqual(["a__x"]);
    expect(names("k")).toEqual(["a__x", "a__asks"]);
  });

  test("may be of many kinds, without the first losing what it has", () => {
    const first = createSource("first", {}, bare);
    const second = createSource("second", { tools: toTools("x") }, bare);
    const { catalog, ownerOf } = make(first, second);
    catalog.settle();
    ownerOf("x");
    first.listed = toListed({ tools: toTools("x") });
    catalog.outdated();
    for (let kind = 0; kind < 200; kind++) expect(ownerOf("x", `kind ${kind}`)).toBe("second");
    expect(ownerOf("x")).toBe("second");
  });
});

describe("arrays", () => {
  test("are the same while nothing changed, and as far as nothing changed", () => {
    const source = createSource("a", { tools: toTools("x"), prompts: [{ name: "p" }] });
    const { catalog } = make(source, createSource("b", { tools: toTools("y") }));
    const before = catalog.snapshotFor(callerNamed());
    expect(catalog.snapshotFor(callerNamed())).toBe(before);
    catalog.outdated();
    expect(catalog.snapshotFor(callerNamed()).tools).toBe(before.tools);
    source.listed = { ...source.listed, prompts: [{ name: "q" }] };
    catalog.outdated();
    const after = catalog.snapshotFor(callerNamed());
    expect(after.tools).toBe(before.tools);
    expect(after.resources).toBe(before.resources);
    expect(after.prompts).not.toBe(before.prompts);
  });
});

test("callers of many kinds that see the same lists share them", () => {
  const source = createSource("a", { tools: toTools("x") });
  const { catalog } = make(source);
  const common = catalog.snapshotFor(callerNamed());
  for (let kind = 0; kind < 100; kind++)
    expect(catalog.snapshotFor(callerNamed(`kind ${kind}`)).tools).toBe(common.tools);
});

test("whatever comes and goes in whatever order, names stay, owners stay, and looking twice is looking once", () => {
  type Step = {
    readonly which: number;
    readonly tools: readonly string[] | undefined;
    readonly key: string | undefined;
  };
  const step: fc.Arbitrary<Step> = fc.record({
    which: fc.nat(3),
    tools: fc.option(fc.uniqueArray(fc.constantFrom("x", "y", "z")), { nil: undefined }),
    key: fc.constantFrom(undefined, "k"),
  });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 25, size: "max" }),
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
      (steps, bares) => {
        const all: readonly FakeSource[] = bares.map((isBare, index) =>
          createSource(`s${index}`, {}, isBare ? bare : {}),
        );
        const { catalog } = make(...all);
        catalog.settle();
        let present: readonly FakeSource[] = all;
        let owners = new Map<string, string>();
        for (const { which, tools, key } of steps) {
          const source = all[which];
          if (source === undefined) continue;
          // Removed, or there with other lists.
          present = all.filter((each) => (each === source ? tools !== undefined : present.includes(each)));
          source.listed = toListed({ tools: toTools(...(tools ?? [])) });
          setSources(catalog, present);
          const snapshot = catalog.snapshotFor(callerNamed(key));
          const general = catalog.snapshotFor(callerNamed());
          expect(catalog.snapshotFor(callerNamed(key))).toBe(snapshot);
          expect(snapshot.tools.map(({ key: name, server }) => [name, server])).toEqual(
            general.tools.map(({ key: name, server }) => [name, server]),
          );
          for (const { key: name, server, ownName, item } of snapshot.tools) {
            const own = all.find(({ config }) => config.name === server);
            expect(name).toBe(own?.config.prefix === false ? ownName : `${server}__${ownName}`);
            expect(item.name).toBe(name);
          }
          // A server that owned a name and still offers it keeps it.
          for (const [name, server] of owners) {
            const own = present.find(({ config }) => config.name === server);
            const offers = own?.listed.tools.some(
              (tool) => name === tool.name || name === `${server}__${tool.name}`,
            );
            const now = snapshot.tools.find((claim) => claim.key === name);
            if (offers === true) expect(now?.server).toBe(server);
          }
          owners = new Map(snapshot.tools.map((claim) => [claim.key, claim.server]));
        }
      },
    ),
    { numRuns: runs(200) },
  );
});
