import { beforeAll, describe, expect, test, vi } from "vitest";
import { callTool, listTools, toProvider } from "../../../../test/support/use-provider.ts";
import { createPromptRegistry } from "../../../server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../../server/src/registry/registry.ts";
import { anyone } from "../compose/catalog.ts";
import { NotFoundError, RpcError, ToolError } from "../errors/index.ts";
import { RawJson } from "../json/raw.ts";
import { elicit } from "../mcp/question.ts";
import { inputRequired, text } from "./content.ts";
import { createCallContext } from "./context.ts";
import type { ListedItem } from "./filters.ts";
import { type CallEnd, latest, type Middleware, withMiddleware } from "./middleware.ts";
import type { Change, Provider } from "./provider.ts";

const context = createCallContext();

function createTools(calls: string[] = []): Registry {
  const registry = createRegistry({ onError: () => {} });
  for (const name of ["open", "secret", "other"]) {
    const input = { type: "object" } as const;
    registry.register(name, { input }, (args) => {
      calls.push(name);
      return `${name} ${JSON.stringify(args)}`;
    });
  }
  registry.register("ask", {}, () => inputRequired({ sure: elicit("Sure?", {}) }, 1));
  registry.register("refuse", {}, () => {
    throw new RpcError("rpc.invalid_params", "not like this");
  });
  return registry;
}

async function call(provider: Provider, name: string, args: object = {}, caller?: string): Promise<unknown> {
  const outcome = await callTool(provider, name, args, createCallContext({ caller }));
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

const saying = (value: string): object => ({ content: [text(value)] });
const without =
  (hidden: string) =>
  (tools: readonly ListedItem[]): readonly ListedItem[] =>
    tools.filter(({ name }) => name !== hidden);
const renaming = (from: string, to: string): Middleware => ({
  beforeCall: (made) => (made.name === from ? { ...made, name: to } : undefined),
});

describe("the order of middlewares", () => {
  const recording = (name: string, log: string[]): Middleware => ({
    filterTools: (tools) => {
      log.push(`filter ${name}`);
      return tools;
    },
    beforeCall: () => void log.push(`before ${name}`),
    afterCall: () => void log.push(`after ${name}`),
  });

  test("is the order of declaration, outermost first, and back again after the call", async () => {
    const log: string[] = [];
    const { filterTools: _, ...first } = recording("m1", log);
    const { filterTools: __, ...second } = recording("m2", log);
    await call(withMiddleware(createTools(log), [first, second]), "open");
    expect(log).toEqual(["before m1", "before m2", "open", "after m2", "after m1"]);
  });

  test("is the order of declaration for filters too", async () => {
    const log: string[] = [];
    const provider = withMiddleware(createTools(), [recording("m1", log), recording("m2", log)]);
    await listTools(provider, context);
    expect(log).toEqual(["filter m1", "filter m2"]);
  });

  test("is fixed at construction", async () => {
    const middlewares = [renaming("open", "other")];
    const provider = withMiddleware(createTools(), middlewares);
    middlewares.pop();
    expect(await call(provider, "open")).toEqual(saying("other {}"));
  });

  test("of none leaves the provider as it was", async () => {
    const registry = createTools();
    const provider = withMiddleware(registry, []);
    expect(await listTools(provider, context)).toBe(await listTools(registry, context));
    expect(await call(provider, "open", { a: 1 })).toEqual(saying('open {"a":1}'));
  });
});

describe("filterTools", () => {
  test("may wait, and is enforced on the call as on the list", async () => {
    const calls: string[] = [];
    const filter: Middleware = { filterTools: async (tools) => without("secret")(tools) };
    const provider = withMiddleware(createTools(calls), [filter]);
    expect((await listTools(provider, context)).map(({ name }) => name)).not.toContain("secret");
    await expect(call(provider, "secret")).rejects.toEqual(new NotFoundError("tool", "secret"));
    expect(calls).toEqual([]);
    expect(await call(provider, "open")).toEqual(saying("open {}"));
  });

  test("is asked again for each caller", async () => {
    const forAdmins: Middleware = {
      filterTools: (tools, { caller }) => (caller === "admin" ? tools : without("secret")(tools)),
    };
    const provider = withMiddleware(createTools(), [forAdmins]);
    expect(await call(provider, "secret", {}, "admin")).toEqual(saying("secret {}"));
    await expect(call(provider, "secret", {}, "guest")).rejects.toBeInstanceOf(NotFoundError);
    await expect(call(provider, "secret")).rejects.toBeInstanceOf(NotFoundError);
  });

  const filter: Middleware = { filterTools: without("secret") };
  const rename = renaming("open", "secret");
  test.each<[string, readonly Middleware[]]>([
    ["the same middleware", [{ ...filter, ...rename }]],
    ["a middleware before it", [rename, filter]],
    ["a middleware after it", [filter, rename]],
  ])("is enforced on what a call was renamed to by %s", async (_, middlewares) => {
    const calls: string[] = [];
    const provider = withMiddleware(createTools(calls), middlewares);
    await expect(call(provider, "open")).rejects.toEqual(new NotFoundError("tool", "secret"));
    expect(calls).toEqual([]);
  });

  test("lets a call be renamed to what is listed", async () => {
    const provider = withMiddleware(createTools(), [filter, renaming("open", "other")]);
    expect(await call(provider, "open")).toEqual(saying("other {}"));
  });

  test("does not keep an outer middleware from seeing the attempt", async () => {
    const ends: CallEnd[] = [];
    const audit: Middleware = { afterCall: (_, end) => void ends.push(end) };
    const provider = withMiddleware(createTools(), [audit, filter]);
    await expect(call(provider, "secret")).rejects.toBeInstanceOf(NotFoundError);
    expect(ends).toEqual([{ kind: "failed", error: new NotFoundError("tool", "secret"), isRefused: true }]);
  });

  test("keeps its middleware's own beforeCall from seeing hidden tools", async () => {
    const seen: string[] = [];
    const both: Middleware = { ...filter, beforeCall: ({ name }) => void seen.push(name) };
    await expect(call(withMiddleware(createTools(), [both]), "secret")).rejects.toThrow("secret");
    expect(seen).toEqual([]);
  });

  test("gives the same array while it leaves the same tools", async () => {
    const registry = createTools();
    const provider = withMiddleware(registry, [filter]);
    const first = await listTools(provider, context);
    expect(await listTools(provider, context)).toBe(first);
    expect(Object.isFrozen(first)).toBe(true);
    registry.unregister("other");
    expect((await listTools(provider, context)).map(({ name }) => name)).toEqual(["open", "ask", "refuse"]);
  });

  test("that returns nothing shows nothing", async () => {
    const forgetful = { filterTools: () => undefined } as unknown as Middleware;
    const provider = withMiddleware(createTools(), [forgetful]);
    await expect(listTools(provider, context)).rejects.toBeInstanceOf(TypeError);
    await expect(call(provider, "open")).rejects.toBeInstanceOf(TypeError);
  });

  test("may change what a tool says about itself", async () => {
    const describe: Middleware = {
      filterTools: (tools) => tools.map((tool) => ({ ...tool, description: "Mine" })),
    };
    const [tool] = await listTools(withMiddleware(createTools(), [describe]), context);
    expect(tool).toMatchObject({ name: "open", description: "Mine" });
  });
});

describe("beforeCall", () => {
  test("may change the arguments", async () => {
    const add: Middleware = {
      beforeCall: async (made) => ({ ...made, arguments: RawJson.fromValue({ added: 1 }) }),
    };
    expect(await call(withMiddleware(createTools(), [add]), "open")).toEqual(saying('open {"added":1}'));
  });

  test.each([new ToolError("not today"), new RpcError("rpc.invalid_request", "never")])(
    "may refuse by $name: the tool does not run, and its own afterCall is not asked",
    async (error) => {
      const [calls, after]: [string[], string[]] = [[], []];
      const outer: Middleware = { afterCall: (_, end) => void after.push(`outer ${end.kind}`) };
      const refusing: Middleware = {
        beforeCall: () => {
          throw error;
        },
        afterCall: () => void after.push("own"),
      };
      const provider = withMiddleware(createTools(calls), [outer, refusing]);
      await expect(call(provider, "open")).rejects.toBe(error);
      expect([calls, after]).toEqual([[], ["outer failed"]]);
    },
  );
});

describe("afterCall", () => {
  test("sees the call as it was carried out, and its result", async () => {
    const seen: unknown[] = [];
    const audit: Middleware = {
      ...renaming("open", "other"),
      afterCall: (made, end) => void seen.push([made.name, end.kind === "complete" && end.result.value]),
    };
    await call(withMiddleware(createTools(), [audit]), "open");
    expect(seen).toEqual([["other", saying("other {}")]]);
  });

  test("may replace a result, and what it does not replace stays", async () => {
    const replace: Middleware = {
      afterCall: async (made) =>
        made.name === "open" ? { kind: "complete", result: RawJson.fromValue(saying("mine")) } : undefined,
    };
    const provider = withMiddleware(createTools(), [replace]);
    expect(await call(provider, "open")).toEqual(saying("mine"));
    expect(await call(provider, "other")).toEqual(saying("other {}"));
  });

  test("sees failures, may replace them, and else lets them through", async () => {
    const ends: CallEnd[] = [];
    const watch: Middleware = { afterCall: (_, end) => void ends.push(end) };
    const rescue: Middleware = {
      afterCall: (_, end) =>
        end.kind === "failed" ? { kind: "complete", result: RawJson.fromValue(saying("saved")) } : undefined,
    };
    const error = new RpcError("rpc.invalid_params", "not like this");
    await expect(call(withMiddleware(createTools(), [watch]), "refuse")).rejects.toEqual(error);
    expect(ends).toEqual([{ kind: "failed", error }]);
    expect(await call(withMiddleware(createTools(), [rescue, watch]), "refuse")).toEqual(saying("saved"));
  });

  test("may turn a result into a failure", async () => {
    const error = new ToolError("too much");
    const limit: Middleware = { afterCall: () => ({ kind: "failed", error }) };
    await expect(call(withMiddleware(createTools(), [limit]), "open")).rejects.toBe(error);
  });

  test("that throws fails the call, and outer ones see that", async () => {
    const ends: string[] = [];
    const outer: Middleware = { afterCall: (_, end) => void ends.push(end.kind) };
    const broken: Middleware = {
      afterCall: () => {
        throw new Error("bug");
      },
    };
    await expect(call(withMiddleware(createTools(), [outer, broken]), "open")).rejects.toThrow("bug");
    expect(ends).toEqual(["failed"]);
  });

  test("sees a question to the user pass through", async () => {
    const kinds: string[] = [];
    const watch: Middleware = { afterCall: (_, end) => void kinds.push(end.kind) };
    const provider = withMiddleware(createTools(), [watch, watch]);
    expect(await call(provider, "ask")).toEqual(inputRequired({ sure: elicit("Sure?", {}) }, 1));
    expect(kinds).toEqual(["input_required", "input_required"]);
  });
});

test("what a provider has besides tools is there, and what it lacks is not", async () => {
  const prompts = createPromptRegistry();
  const registry = createRegistry({ prompts, cacheHints: { ttlMs: 5, cacheScope: "public" } });
  const provider = withMiddleware(registry, [{}]);
  const { serves } = provider.offers(anyone);
  expect(["prompts/get", "resources/read", "completion/complete"].map(serves)).toEqual([true, false, false]);
  expect(await provider.list("prompts", context)).toMatchObject({
    items: [],
    hints: { ttlMs: 5, cacheScope: "public" },
  });
  const seen: Change[] = [];
  provider.onChange?.((change) => seen.push(change));
  registry.register("new", {}, () => "");
  await Promise.resolve();
  expect(seen).toMatchObject([{ part: "tools" }]);
});

test("a filter that depends on the caller is not announced as the same list for everyone", async () => {
  const registry = createRegistry({ cacheHints: { ttlMs: 5, cacheScope: "public" } });
  const filtered = withMiddleware(registry, [{ filterTools: (tools) => tools }]);
  const { hints } = await filtered.list("tools", context);
  expect(hints).toEqual({ ttlMs: 5, cacheScope: "private" });
});

describe("a call that waits for nothing", () => {
  const registry = createTools();
  const args = RawJson.fromText("{}");
  const passive: Middleware = { beforeCall: () => {}, afterCall: () => {} };
  const filter: Middleware = { filterTools: without("secret") };

  // The first check of arguments in a process waits for the engine.
  beforeAll(async () => {
    const call = (): unknown => callTool(registry, "open", args, context);
    await vi.waitUntil(() => !(call() instanceof Promise), { timeout: 90_000 });
  });

  test.each<[string, readonly Middleware[]]>([
    ["no middleware", []],
    ["hooks", [passive, passive]],
    ["a filter", [filter]],
    ["a filter and hooks that rename", [filter, passive, renaming("open", "other")]],
  ])("is answered at once with %s", (_, middlewares) => {
    const provider = withMiddleware(registry, middlewares);
    expect(listTools(provider, context)).toBeInstanceOf(Array);
    expect(callTool(provider, "open", args, context)).toMatchObject({ kind: "complete" });
  });

  test.each<[string, string, readonly Middleware[]]>([
    ["a hidden tool", "Tool not found: secret", [filter]],
    [
      "a refusal",
      "not now",
      [
        {
          beforeCall: () => {
            throw new ToolError("not now");
          },
        },
      ],
    ],
  ])("is rejected, not thrown: %s", async (_, message, middlewares) => {
    const outcome = callTool(withMiddleware(registry, middlewares), "secret", args, context);
    expect(outcome).toBeInstanceOf(Promise);
    await expect(outcome).rejects.toThrow(message);
  });
});

test("hooks may return promises of another kind", async () => {
  const thenable = <T>(value: T): Promise<T> =>
    ({ then: (resolve: (value: T) => void) => resolve(value) }) as unknown as Promise<T>;
  const ends: string[] = [];
  const foreign: Middleware = {
    filterTools: (tools) => thenable(without("secret")(tools)),
    beforeCall: (made) => thenable({ ...made, name: made.name === "open" ? "other" : made.name }),
    afterCall: (made, end) => (ends.push(`${made.name} ${end.kind}`), thenable(end)),
  };
  const provider = withMiddleware(createTools(), [foreign]);
  expect((await listTools(provider, context)).map(({ name }) => name)).not.toContain("secret");
  expect(await call(provider, "open")).toEqual(saying("other {}"));
  await expect(call(provider, "secret")).rejects.toBeInstanceOf(NotFoundError);
  expect(ends).toEqual(["other complete"]);
});

test("a call in a long list that did not change looks at one name, not at all of them", () => {
  let looks = 0;
  const tools = Array.from({ length: 1000 }, (_, index) => {
    const tool = { name: "", inputSchema: { type: "object" } };
    return Object.defineProperty(tool, "name", { get: () => (looks++, `t${index}`) });
  });
  const frozen = Object.freeze(tools);
  const done = { kind: "complete", result: RawJson.fromText("{}") } as const;
  const provider = withMiddleware(
    toProvider(frozen, () => done),
    [{ filterTools: (items) => items }],
  );
  for (let times = 0; times < 10; times++)
    expect(callTool(provider, "t999", done.result, context)).toBe(done);
  expect(looks).toBe(1000);
});

test("tasks pass middleware, also those of a tool that is registered later", () => {
  const registry = createRegistry();
  const provider = withMiddleware(registry, [{}]);
  const current = latest(() => provider);
  const hasTasks = (): readonly boolean[] =>
    [provider, current].map((each) => each.offers(anyone).serves("tasks/get"));
  expect(hasTasks()).toEqual([false, false]);
  registry.register("long", { task: "optional" }, () => "secret");
  expect(hasTasks()).toEqual([true, true]);
});
