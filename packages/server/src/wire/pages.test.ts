import { afterEach, describe, expect, test, vi } from "vitest";
import { type Conversation, talkLegacy, talkModern } from "../../../../test/support/conversation.ts";
import type { RawJson } from "../../../core/src/json/raw.ts";
import { legacyRevisions } from "../../../core/src/mcp/revision.ts";
import { Listing } from "../../../core/src/provider/listing.ts";
import { createPromptRegistry } from "../registry/prompts.ts";
import { createRegistry, type Registry } from "../registry/registry.ts";
import { createResourceRegistry } from "../registry/resources.ts";
import { createPager } from "./methods.ts";
import { createServer } from "./server.ts";

const info = { name: "test-server", version: "1" };
const names = Array.from({ length: 25 }, (_, index) => `tool-${index}`);

function createMany(): Registry {
  const resources = createResourceRegistry();
  const prompts = createPromptRegistry();
  const registry = createRegistry({ resources, prompts });
  for (const name of names) {
    registry.register(name, {}, () => name);
    resources.register(`x:${name}`, { name }, () => name);
    resources.registerTemplate(`x:${name}/{id}`, { name }, () => name);
    prompts.register(name, {}, () => name);
  }
  return registry;
}

interface Page {
  readonly [member: string]: unknown;
  readonly nextCursor?: string;
}

/** Follows the cursors from the start to the end. */
async function walk(client: Conversation, method: string, member: string): Promise<readonly unknown[][]> {
  const pages: unknown[][] = [];
  let cursor: string | undefined;
  do {
    const page: Page = await client.result<Page>(method, cursor === undefined ? {} : { cursor });
    pages.push(page[member] as unknown[]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return pages;
}

describe("a list in pages", () => {
  test.each([
    ["tools/list", "tools"],
    ["resources/list", "resources"],
    ["resources/templates/list", "resourceTemplates"],
    ["prompts/list", "prompts"],
  ])("%s is the whole list, in its order", async (method, member) => {
    await using whole = talkModern(createServer(createMany(), info));
    await using paged = talkModern(createServer(createMany(), info, { pageSize: 10 }));
    const [all] = await walk(whole, method, member);
    const pages = await walk(paged, method, member);
    expect(pages.map((page) => page.length)).toEqual([10, 10, 5]);
    expect(pages.flat()).toEqual(all);
  });

  test.each([1, 5, 25, 26])("ends without a cursor at page size %i", async (pageSize) => {
    await using client = await talkLegacy(createServer(createMany(), info, { pageSize }), "2025-11-25");
    const pages = await walk(client, "tools/list", "tools");
    expect(pages).toHaveLength(Math.ceil(25 / pageSize));
  });

  test.each(["", "nonsense", "dG9vbC05OTk", "dG9vbC0w==", 7, null, {}])(
    "refuses the cursor %j with -32602",
    async (cursor) => {
      await using client = talkModern(createServer(createMany(), info, { pageSize: 10 }));
      await expect(client.error("tools/list", { cursor })).resolves.toMatchObject({ code: -32602 });
    },
  );

  test("skips and repeats nothing when something is added or removed elsewhere", async () => {
    const registry = createMany();
    await using client = talkModern(createServer(registry, info, { pageSize: 10 }));
    const first = await client.result<Page>("tools/list");
    registry.unregister("tool-3");
    registry.register("late", {}, () => "late");
    const second = await client.result<Page>("tools/list", { cursor: first.nextCursor });
    expect((second["tools"] as { name: string }[]).map(({ name }) => name)).toEqual(names.slice(10, 20));
  });

  test("cannot be followed past an item that was removed", async () => {
    const registry = createMany();
    await using client = talkModern(createServer(registry, info, { pageSize: 10 }));
    const { nextCursor } = await client.result<Page>("tools/list");
    registry.unregister("tool-9");
    await expect(client.error("tools/list", { cursor: nextCursor })).resolves.toMatchObject({ code: -32602 });
  });
});

describe("what was written of a list", () => {
  afterEach(() => vi.restoreAllMocks());

  test("is written once per revision and change, not per request", async () => {
    const registry = createMany();
    const server = createServer(registry, info);
    await using modern = talkModern(server);
    await using legacy = await talkLegacy(server, "2024-11-05");
    const stringify = vi.spyOn(JSON, "stringify");
    const count = async (): Promise<number> => {
      stringify.mockClear();
      await modern.result("tools/list");
      await legacy.result("tools/list");
      return stringify.mock.calls.filter(([value]) => isTool(value)).length;
    };
    expect(await count()).toBeGreaterThan(0);
    expect(await count()).toBe(0);
    expect(await count()).toBe(0);
    registry.register("one-more", {}, () => "");
    expect(await count()).toBeGreaterThan(0);
    expect(await count()).toBe(0);
  });

  test("is the very same JSON for as long as the list is the same", () => {
    const pager = createPager({
      onFault: () => {},
      part: "prompts",
      member: "prompts",
      pageSize: 2,
      finish: (page) => page,
    });
    const items = new Listing([{ name: "a" }, { name: "b" }, { name: "c" }]);
    const era = { kind: "legacy", session: undefined } as const;
    const first = pager(items, undefined, era);
    const cursor = first.at("nextCursor") as RawJson;
    expect(pager(items, undefined, era)).toBe(first);
    expect(pager(items, cursor, era)).toBe(pager(items, cursor, era));
    expect(pager(new Listing(items.items), undefined, era)).not.toBe(first);
  });
});

const everyField = {
  title: "Title",
  description: "What it does",
  output: { type: "array", items: { $ref: "#/$defs/n" }, $defs: { n: { type: "number" } } },
  annotations: { readOnlyHint: true },
  icons: [{ src: "data:image/png;base64,AA==" }],
  _meta: { "com.example/x": 1 },
} as const;

/** The fields of a tool and of a resource that a revision knows. */
const fieldsOf = {
  "2024-11-05": { tool: ["description", "inputSchema", "name"], resource: ["description", "name", "uri"] },
  "2025-03-26": {
    tool: ["annotations", "description", "inputSchema", "name"],
    resource: ["description", "name", "uri"],
  },
  "2025-06-18": {
    tool: ["_meta", "annotations", "description", "inputSchema", "name", "outputSchema", "title"],
    resource: ["_meta", "description", "name", "title", "uri"],
  },
  "2025-11-25": {
    tool: ["_meta", "annotations", "description", "icons", "inputSchema", "name", "outputSchema", "title"],
    resource: ["_meta", "description", "icons", "name", "title", "uri"],
  },
} as const;

function createDetailed(): Registry {
  const { title, description, icons, _meta } = everyField;
  const resources = createResourceRegistry();
  const prompts = createPromptRegistry();
  resources.register("x:y", { name: "r", title, description, icons, _meta }, () => "");
  prompts.register(
    "p",
    { title, description, icons, _meta, arguments: [{ name: "a", title, required: true }] },
    () => "",
  );
  const registry = createRegistry({ resources, prompts });
  registry.register("t", everyField, () => [1]);
  return registry;
}

describe("what a revision does not know is left out", () => {
  test.each(legacyRevisions)("of tools, resources and prompts in %s", async (revision) => {
    await using client = await talkLegacy(createServer(createDetailed(), info), revision);
    const [tools, resources, prompts] = [
      await client.result<{ tools: object[] }>("tools/list"),
      await client.result<{ resources: object[] }>("resources/list"),
      await client.result<{ prompts: { arguments: object[] }[] }>("prompts/list"),
    ];
    expect(Object.keys(tools).concat(Object.keys(resources))).toEqual(["tools", "resources"]);
    expect(Object.keys(tools.tools[0] ?? {}).toSorted()).toEqual(fieldsOf[revision].tool);
    expect(Object.keys(resources.resources[0] ?? {}).toSorted()).toEqual(fieldsOf[revision].resource);
    const hasTitles = revision >= "2025-06-18";
    expect("title" in (prompts.prompts[0] ?? {})).toBe(hasTitles);
    expect("title" in (prompts.prompts[0]?.arguments[0] ?? {})).toBe(hasTitles);
  });

  test("and everything is there in 2026-07-28", async () => {
    await using client = talkModern(createServer(createDetailed(), info));
    const { tools } = await client.result<{ tools: object[] }>("tools/list");
    const { output, ...shown } = everyField;
    expect(tools).toEqual([
      {
        name: "t",
        ...shown,
        inputSchema: { type: "object", additionalProperties: false },
        outputSchema: output,
      },
    ]);
  });

  test.each(["2025-06-18", "2025-11-25"] as const)(
    "an output schema that is not an object is wrapped in %s, references moved along",
    async (revision) => {
      await using client = await talkLegacy(createServer(createDetailed(), info), revision);
      const { tools } = await client.result<{ tools: { outputSchema: unknown }[] }>("tools/list");
      expect(tools[0]?.outputSchema).toEqual({
        type: "object",
        properties: {
          result: {
            type: "array",
            items: { $ref: "#/properties/result/$defs/n" },
            $defs: { n: { type: "number" } },
          },
        },
        required: ["result"],
      });
    },
  );
});

function isTool(value: unknown): boolean {
  return typeof value === "object" && value !== null && "inputSchema" in value;
}
