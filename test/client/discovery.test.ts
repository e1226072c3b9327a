import { describe, expect, test } from "vitest";
import { type Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import type { ListFault } from "../../packages/core/src/fit/fit-listed.ts";
import { createVirtualClock } from "../../packages/junctor/src/testing/virtual-clock.ts";
import { FakePipe, type Reaction } from "../support/fake-pipe.ts";
import { echoTool, legacyScript, modernScript } from "../support/fake-script.ts";
import type { Message } from "../support/raw-http.ts";

const tool = (name: string): object => ({ name, inputSchema: { type: "object" } });

/** Pages by cursor; undefined is the first. */
type Pages = (cursor: unknown) => { readonly tools: readonly unknown[]; readonly nextCursor?: unknown };

async function meet(
  pages: Pages,
  options: ConnectOptions & { readonly era?: "modern" | "legacy"; readonly hints?: object } = {},
): Promise<{ client: Client; pipe: FakePipe; lists: () => readonly Message[] }> {
  const { era = "modern", hints = { ttlMs: 0, cacheScope: "private" }, ...rest } = options;
  const first = ({ method, params }: Message): Reaction =>
    method === "tools/list"
      ? { result: { resultType: "complete", ...hints, ...pages(params?.["cursor"]) } }
      : undefined;
  const pipe = new FakePipe(era === "modern" ? modernScript({ first }) : legacyScript({ first }));
  const client = await connect(pipe.target, rest);
  const lists = (): readonly Message[] => pipe.received.filter(({ method }) => method === "tools/list");
  return { client, pipe, lists };
}

const namesOf = async (client: Client): Promise<readonly string[]> =>
  (await client.listTools()).map(({ name }) => name);

describe("a list in pages", () => {
  test("is followed to its end, cursors untouched", async () => {
    const next: { readonly [cursor: string]: unknown } = { undefined: "b ü/=", "b ü/=": "", "": undefined };
    const { client, lists } = await meet((cursor) => ({
      tools: [tool(`after ${String(cursor)}`)],
      nextCursor: next[String(cursor)],
    }));
    expect(await namesOf(client)).toEqual(["after undefined", "after b ü/=", "after "]);
    expect(lists().map(({ params }) => params?.["cursor"])).toEqual([undefined, "b ü/=", ""]);
  });

  test("that goes in circles is an error, not a hang", async () => {
    const { client } = await meet((cursor) => ({ tools: [], nextCursor: cursor === "a" ? "b" : "a" }));
    await expect(client.listTools()).rejects.toThrow(/circles/);
  });

  test("that never ends is an error", async () => {
    let page = 0;
    const { client, lists } = await meet(() => ({ tools: [tool(`t${page}`)], nextCursor: String(page++) }));
    await expect(client.listTools()).rejects.toThrow(/more than 1000 pages/);
    expect(lists()).toHaveLength(1000);
  });

  test("with a page that fails fails as a whole, and is asked for again the next time", async () => {
    let isBroken = true;
    const pipe = new FakePipe(
      modernScript({
        first: ({ method }) =>
          method === "tools/list" && isBroken ? { error: { code: -32603, message: "not now" } } : undefined,
      }),
    );
    const client = await connect(pipe.target);
    await expect(client.listTools()).rejects.toMatchObject({ rpcCode: -32603, delivery: "answered" });
    isBroken = false;
    expect(await namesOf(client)).toEqual(["echo"]);
  });
});

describe("an item that makes no sense", () => {
  test.each<[string, unknown]>([
    ["no object", 5],
    ["without a name", { inputSchema: {} }],
    ["with a name that is not a string", { name: 7, inputSchema: {} }],
    ["with a schema that is not a schema", { name: "odd", inputSchema: "none" }],
    ["with a name that another has", tool("a")],
    ["null", null],
  ])("%s is left out alone, with a warning", async (_, item) => {
    const warnings: string[] = [];
    const onWarning = (text: string): void => void warnings.push(text);
    const { client } = await meet(() => ({ tools: [tool("a"), item, tool("b")] }), { onWarning });
    expect(await namesOf(client)).toEqual(["a", "b"]);
    expect(warnings).toEqual([expect.stringContaining("Left out of tools/list")]);
  });

  test("is reported once, and again when something else is wrong", async () => {
    const warnings: string[] = [];
    const faults: ListFault[] = [];
    let odd: unknown = { name: "odd", inputSchema: 1 };
    const answer = (): { tools: unknown[] } => ({ tools: [odd] });
    const { client } = await meet(answer, { onWarning: (text) => void warnings.push(text) });
    const other = await meet(answer, { onListFault: (fault) => void faults.push(fault) });
    for (const each of [client, client, other.client, other.client]) await each.listTools();
    odd = { name: "odd" };
    for (const each of [client, other.client]) await each.listTools();
    expect(warnings).toEqual([
      "Left out of tools/list: odd: inputSchema is number 1, not a JSON Schema of an object",
    ]);
    expect(faults).toMatchObject([{ isLeftOut: true }, { isLeftOut: false }]);
  });

  test("is not a list at all: that is an error, and no empty list", async () => {
    const { client } = await meet(() => ({ tools: "none" as never }));
    await expect(client.listTools()).rejects.toThrow(
      'The server\'s list of tools is not an array, but string "none"',
    );
  });

  test("has its texts cut and cleared of what steers a terminal", async () => {
    const name = `\u001b[2J\u202e${"x".repeat(10_000)}`;
    const { client } = await meet(() => ({ tools: [{ name, inputSchema: { type: name } }] }));
    await client.listTools();
    const [fault] = client.listFaults;
    expect(fault?.name).toHaveLength(200);
    expect(`${fault?.name} ${fault?.reason}`).not.toMatch(/\p{Cc}|\p{Cf}/u);
    expect(fault?.reason.length).toBeLessThan(501);
  });
});

describe("an item that clients would refuse", () => {
  test("is mended where that does not change its meaning, and can be called", async () => {
    const { client } = await meet(() => ({
      tools: [tool("a"), { name: "echo" }, { ...tool("b"), description: null }],
    }));
    expect(await client.listTools()).toEqual([
      tool("a"),
      { name: "echo", inputSchema: { type: "object" } },
      tool("b"),
    ]);
    expect(client.listFaults).toEqual([
      {
        part: "tools",
        name: "echo",
        isLeftOut: false,
        reason: 'inputSchema set to {"type":"object"}: it is missing',
      },
      { part: "tools", name: "b", isLeftOut: false, reason: "description removed: null is not a string" },
    ]);
  });
});

test("unknown members of a definition are kept", async () => {
  const odd = {
    ...tool("odd"),
    title: "Odd",
    inputSchema: {
      type: "object",
      $defs: { x: { type: "number", "x-unit": "m" } },
      unevaluatedProperties: false,
    },
    annotations: { readOnlyHint: true },
    _meta: { "example.com/a": 1 },
    "x-future": [1, 2],
  };
  const { client } = await meet(() => ({ tools: [odd] }));
  expect(await client.listTools()).toEqual([odd]);
});

describe("a modern list", () => {
  test("is kept as long as the server says, by the strictest of its pages", async () => {
    const clock = createVirtualClock();
    const { client, lists } = await meet(
      (cursor) => ({
        tools: [tool("a")],
        ...(cursor === undefined ? { nextCursor: "2", ttlMs: 9000 } : { ttlMs: 5000 }),
      }),
      { clock },
    );
    const first = await client.listTools();
    await clock.advance(4999);
    expect(await client.listTools()).toBe(first);
    expect(lists()).toHaveLength(2);
    await clock.advance(1);
    await client.listTools();
    expect(lists()).toHaveLength(4);
  });

  test.each([0, -1, "soon", undefined])("with the time to live %s is not kept", async (ttlMs) => {
    const { client, lists } = await meet(() => ({ tools: [tool("a")] }), { hints: { ttlMs } });
    await client.listTools();
    await client.listTools();
    expect(lists()).toHaveLength(2);
  });

  test("is kept for a day at most", async () => {
    const clock = createVirtualClock();
    const { client, lists } = await meet(() => ({ tools: [] }), { clock, hints: { ttlMs: 1e15 } });
    await client.listTools();
    await clock.advance(24 * 3_600_000);
    await client.listTools();
    expect(lists()).toHaveLength(2);
  });
});

describe("a legacy list over a pipe", () => {
  test("is kept until the server announces a change", async () => {
    let tools = [tool("a")];
    const { client, pipe, lists } = await meet(() => ({ tools }), { era: "legacy" });
    await namesOf(client);
    expect(await namesOf(client)).toEqual(["a"]);
    expect(lists()).toHaveLength(1);
    tools = [tool("a"), tool("b")];
    pipe.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    await expect.poll(() => namesOf(client)).toEqual(["a", "b"]);
    await namesOf(client);
    expect(lists()).toHaveLength(2);
  });

  test("is asked for every time when the server announces nothing", async () => {
    const first = ({ method }: Message): Reaction =>
      method === "tools/list" ? { result: { tools: [echoTool] } } : undefined;
    const pipe = new FakePipe(legacyScript({ first, capabilities: { tools: {} } }));
    const client = await connect(pipe.target);
    await client.listTools();
    await client.listTools();
    expect(pipe.methods.filter((method) => method === "tools/list")).toHaveLength(2);
  });
});

test("however many ask at once, the list is fetched once", async () => {
  const { client, lists } = await meet(() => ({ tools: [tool("a")] }));
  const all = await Promise.all(Array.from({ length: 50 }, () => client.listTools()));
  expect(lists()).toHaveLength(1);
  expect(new Set(all).size).toBe(1);
});

test("a change announced while the list is fetched makes the next request fetch it again", async () => {
  let isFirst = true;
  const pipe = new FakePipe((message) => {
    if (message.method !== "tools/list") return legacyScript()(message);
    const tools = [tool(isFirst ? "old" : "new")];
    if (isFirst) pipe.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    isFirst = false;
    return { result: { tools } };
  });
  const client = await connect(pipe.target);
  expect(await namesOf(client)).toEqual(["old"]);
  expect(await namesOf(client)).toEqual(["new"]);
});

test("a server without tools is not asked for them", async () => {
  const pipe = new FakePipe(modernScript({ capabilities: {} }));
  const client = await connect(pipe.target);
  expect(await client.availableTools()).toBe(false);
  expect(pipe.methods).toEqual(["server/discover"]);
});

test("resources, templates and prompts are listed by the same rules", async () => {
  const answers: { readonly [method: string]: object } = {
    "resources/list": { resources: [{ uri: "a:b", name: "x" }, { name: "no uri" }] },
    "resources/templates/list": { resourceTemplates: [{ uriTemplate: "a:{b}", name: "y" }, {}] },
    "prompts/list": { prompts: [{ name: "z" }, []] },
  };
  const first = ({ method = "" }: Message): Reaction =>
    method in answers ? { result: { resultType: "complete", ttlMs: 0, ...answers[method] } } : undefined;
  const pipe = new FakePipe(modernScript({ first, capabilities: { resources: {}, prompts: {} } }));
  const client = await connect(pipe.target);
  expect(await client.listResources()).toEqual([{ uri: "a:b", name: "x" }]);
  expect(await client.listResourceTemplates()).toEqual([{ uriTemplate: "a:{b}", name: "y" }]);
  expect(await client.listPrompts()).toEqual([{ name: "z" }]);
});

describe("a server that does not know a list method", () => {
  const methods = ["resources/list", "resources/templates/list", "prompts/list"];

  test.each(["modern", "legacy"] as const)("has none of those things (%s)", async (era) => {
    const capabilities = { tools: {}, resources: {}, prompts: {} };
    const pipe = new FakePipe((era === "modern" ? modernScript : legacyScript)({ capabilities }));
    await using client = await connect(pipe.target);
    expect(await client.listResources()).toEqual([]);
    expect(await client.listResourceTemplates()).toEqual([]);
    expect(await client.listPrompts()).toEqual([]);
    expect(pipe.methods).toEqual(expect.arrayContaining(methods));
  });

  test("has an error where it declared tools, and where the method is lost between two pages", async () => {
    const first = ({ method, params }: Message): Reaction => {
      const isKnown = method === "prompts/list" && params?.["cursor"] === undefined;
      if (isKnown) return { result: { prompts: [{ name: "p" }], nextCursor: "next" } };
      return method?.endsWith("/list") === true ? { error: { code: -32601, message: "no" } } : undefined;
    };
    const pipe = new FakePipe(legacyScript({ first, capabilities: { tools: {}, prompts: {} } }));
    await using client = await connect(pipe.target);
    await expect(client.listTools()).rejects.toMatchObject({ rpcCode: -32601 });
    await expect(client.listPrompts()).rejects.toMatchObject({ rpcCode: -32601 });
  });
});
