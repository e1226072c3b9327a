import { describe, expect, test } from "vitest";
import { callTool, listTools, toProvider } from "../../../../test/support/use-provider.ts";
import { compose } from "../../../core/src/compose/compose.ts";
import { RpcError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { definitionOf } from "../../../core/src/mcp/definition.ts";
import type { Tool } from "../../../core/src/mcp/types.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { emptyListing, Listing } from "../../../core/src/provider/listing.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import type { Change, Notice, Operation, Outcome, Provider } from "../../../core/src/provider/provider.ts";
import { createRegistry, type Registry } from "../../../server/src/registry/registry.ts";
import { withBudget } from "./with-budget.ts";
import { withProfile } from "./with-profile.ts";
import { type SearchOptions, withSearch } from "./with-search.ts";

const issue = {
  type: "object",
  properties: {
    title: { type: "string" },
    body: { type: "string" },
    labels: { type: "array", items: { type: "string" } },
  },
  required: ["title"],
} as const;

function createParts(): { readonly github: Registry; readonly files: Registry } {
  const github = createRegistry();
  github.register(
    "create_issue",
    { description: "Creates an issue in a repository. It needs a title.", input: issue },
    (args) => JSON.stringify(args),
  );
  github.register("merge_pull_request", { description: "Merges a pull request." }, () => "merged");
  const files = createRegistry();
  files.register(
    "read_file",
    { description: "Reads a file.", annotations: { readOnlyHint: true } },
    () => "text of a file",
  );
  files.register("remove", { description: "Removes a file for good." }, () => "gone");
  return { github, files };
}

const create = (options: SearchOptions = {}): Provider => withSearch(compose({ ...createParts() }), options);

async function call(provider: Provider, name: string, args: object | string): Promise<string> {
  const outcome = await callTool(provider, name, typeof args === "string" ? RawJson.fromText(args) : args);
  if (outcome.kind !== "complete") throw new Error(outcome.kind);
  const { content } = outcome.result.value as { readonly content: readonly { readonly text: string }[] };
  return content.map(({ text }) => text).join("\n");
}

const names = (tools: readonly Tool[]): readonly string[] => tools.map(({ name }) => name);

test("names and queries of a million letters cost no more than short ones", async () => {
  const long = "create_issue ".repeat(80_000);
  const provider = create({ trustsHints: () => true });
  for (const name of ["call_tool", "call_read_tool"])
    await expect(call(provider, name, { name: long })).rejects.toThrow(/^Unknown tool: ".{1000}…"/);
  expect((await call(provider, "describe_tools", { names: [long] })).length).toBeLessThan(2000);
  await expect(call(provider, "search_tools", { query: long })).rejects.toThrow("the limit is 1000");
});

test("the list has the tools of the search, which name the servers", async () => {
  const tools = await listTools(create());
  expect(names(tools)).toEqual(["search_tools", "describe_tools", "call_tool"]);
  expect(tools[0]?.description).toContain("github, files");
  const trusting = await listTools(create({ trustsHints: () => true }));
  expect(names(trusting)).toEqual(["search_tools", "describe_tools", "call_read_tool", "call_tool"]);
  expect(trusting[2]?.annotations).toEqual({ readOnlyHint: true });
  expect(trusting[3]?.annotations).toEqual({ destructiveHint: true });
});

test("what is pinned stays in the list, and says that it is to be loaded", async () => {
  const provider = create({ pin: ["files__remove"] });
  const tools = await listTools(provider);
  expect(names(tools)).toContain("files__remove");
  expect(tools.at(-1)?._meta).toEqual({ "anthropic/alwaysLoad": true });
  expect(await listTools(provider)).toBe(tools);
});

describe("search_tools", () => {
  test("answers with signatures of what fits, best first", async () => {
    const found = await call(create(), "search_tools", { query: "open a new ticket" });
    expect(found.split("\n")[0]).toBe(
      "github__create_issue(title: string, body?: string, labels?: string[]) — Creates an issue in a repository.",
    );
  });

  test("puts a tool that the query names before all others", async () => {
    for (const query of ["files__remove", "please use files__remove.", "remove"])
      expect((await call(create(), "search_tools", { query })).startsWith("files__remove(")).toBe(true);
  });

  test("shows as many signatures as asked for, and then names", async () => {
    const found = await call(create(), "search_tools", { query: "file issue request", limit: 1 });
    expect(found.split("\n")).toHaveLength(2);
    expect(found).toContain("\nMore: ");
  });

  test("stays within a server, and tells of servers without a query", async () => {
    expect(await call(create(), "search_tools", { query: "file issue", server: "github" })).not.toContain(
      "files__",
    );
    expect(await call(create(), "search_tools", {})).toBe("github (2), files (2)");
    expect(await call(create(), "search_tools", { server: "files" })).toBe("files__read_file, files__remove");
    expect(await call(create(), "search_tools", { query: "zzz" })).toContain("No tool fits");
  });

  test.each([[{ query: 1 }], [{ limit: 0 }], [{ limit: 21 }], [{ server: "x" }]])(
    "refuses %j",
    async (args) => {
      await expect(call(create(), "search_tools", args)).rejects.toThrow("must be");
    },
  );
});

describe("describe_tools", () => {
  test("gives definitions as the list has them", async () => {
    const inner = compose({ ...createParts() });
    const provider = withSearch(inner);
    const [tool] = await listTools(inner, createCallContext());
    expect(await call(provider, "describe_tools", { names: ["github__create_issue"] })).toBe(
      definitionOf(tool!).text,
    );
  });

  test("tells of names that are not there, with the nearest", async () => {
    const text = await call(create(), "describe_tools", { names: ["github__create_isue"] });
    expect(text).toContain("Unknown tool");
    expect(text).toContain("github__create_issue");
    await expect(call(create(), "describe_tools", { names: [] })).rejects.toThrow("1 to 5");
  });
});

describe("call_tool", () => {
  test("calls by the real name, with the arguments as they came", async () => {
    const seen: string[] = [];
    const inner = toProvider([], ({ name, arguments: args }) => {
      seen.push(name, args.text);
      return { kind: "complete", result: RawJson.fromText('{"content":[]}') };
    });
    await call(
      withSearch(inner),
      "call_tool",
      '{"name":"x","arguments":{"n":1.0,"big":12345678901234567890}}',
    );
    expect(seen).toEqual(["x", '{"n":1.0,"big":12345678901234567890}']);
  });

  test.each([
    ['{"name":"files__read_file","name":"files__remove"}', "second"],
    ['{"name":"files__read_file","Name":"files__remove"}', "name"],
    ['{"name":1}', "must be the name"],
    ['{"name":"files__remove","arguments":"{}"}', "must be an object"],
    ['{"name":"call_tool","arguments":{"name":"files__remove"}}', "Unknown tool"],
  ])("refuses %s", async (args, message) => {
    await expect(call(create(), "call_tool", args)).rejects.toThrow(message);
  });

  test("tells of a tool that is not there, with three that are near", async () => {
    await expect(call(create(), "call_tool", { name: "github__create_isue" })).rejects.toThrow(
      /Unknown tool: "github__create_isue". Nearest: github__create_issue/,
    );
  });

  test("tells what a tool takes when its arguments are refused", async () => {
    const text = await call(create(), "call_tool", { name: "github__create_issue", arguments: {} });
    expect(text).toContain("title");
    expect(text).toContain("github__create_issue(title: string, body?: string, labels?: string[])");
    const strict = toProvider([{ name: "x", inputSchema: issue }], () =>
      Promise.reject(new RpcError("rpc.invalid_params", "Invalid params: no")),
    );
    await expect(call(withSearch(strict), "call_tool", { name: "x" })).rejects.toThrow(
      "Invalid params: no\nx(title: string, body?: string, labels?: string[])",
    );
  });

  test("is not needed: real names stay callable", async () => {
    expect(await call(create(), "files__read_file", {})).toBe("text of a file");
  });
});

test("call_read_tool calls only tools that say they read, of servers that are trusted", async () => {
  const provider = create({ trustsHints: (server) => server === "files" });
  expect(await call(provider, "call_read_tool", { name: "files__read_file" })).toBe("text of a file");
  for (const name of ["files__remove", "github__create_issue"])
    await expect(call(provider, "call_read_tool", { name })).rejects.toThrow("Call it by call_tool");
  await expect(call(create(), "call_read_tool", { name: "files__read_file" })).rejects.toThrow(
    "Call it by call_tool",
  );
  await expect(call(provider, "call_read_tool", { name: "nothing" })).rejects.toThrow("Unknown tool");
});

test("whose a tool is follows from the composition, not from its name", async () => {
  const inner = createRegistry();
  inner.register("files__wipe", { annotations: { readOnlyHint: true } }, () => "wiped");
  const parts = { ...createParts(), "odd_-one": inner };
  for (const separator of ["__", "."] as const) {
    // Renaming and cutting change definitions, and those stay the server's.
    const composed = withBudget(compose(parts, { separator }), { maxResultTokens: { "*": 1000 } });
    const rename = { [`files${separator}read_file`]: "odd_-one__read" };
    const provider = withSearch(withProfile(composed, { rename }), {
      trustsHints: (server) => server === "files",
    });
    expect(await call(provider, "call_read_tool", { name: "odd_-one__read" })).toBe("text of a file");
    const wipe = `odd_-one${separator}files__wipe`;
    expect(await call(provider, "search_tools", { server: "odd_-one" })).toBe(wipe);
    await expect(call(provider, "call_read_tool", { name: wipe })).rejects.toThrow("Call it by call_tool");
  }
  const alone = withSearch(inner, { trustsHints: (server) => server === "files" });
  await expect(call(alone, "call_read_tool", { name: "files__wipe" })).rejects.toThrow(
    "Call it by call_tool",
  );
});

describe("auto", () => {
  const listFor = async (budget: number, client?: string): Promise<readonly string[]> => {
    const clientInfo = client === undefined ? undefined : { name: client, version: "1" };
    return names(await listTools(create({ tools: "auto", budget }), createCallContext({ clientInfo })));
  };

  test("lists all tools below the budget, and the search above it", async () => {
    expect(await listFor(10_000)).toHaveLength(4);
    expect(await listFor(10)).toContain("search_tools");
  });

  test("lists all to clients that defer by themselves", async () => {
    for (const client of ["claude-code", "codex-mcp-client", "Visual Studio Code"])
      expect(await listFor(10, client)).toHaveLength(4);
    expect(await listFor(10, "Zed")).toContain("search_tools");
  });
});

test("a tool that is added is found, and one that is removed is not", async () => {
  const parts = createParts();
  const provider = withSearch(compose({ ...parts }));
  expect(await call(provider, "search_tools", { query: "weather" })).toContain("No tool fits");
  parts.github.register("weather", { description: "Tells the weather." }, () => "rain");
  expect(await call(provider, "search_tools", { query: "weather" })).toContain("github__weather");
});

test("servers that come and go are not news where nothing is pinned", () => {
  const listeners: ((change: Change) => void)[] = [];
  const inner = toProvider([], () => ({ kind: "working" }), {
    onChange: (listener) => (listeners.push(listener), () => {}),
  });
  const heard: unknown[] = [];
  for (const options of [{}, { pin: ["x"] }])
    withSearch(inner, options).onChange?.((change) => heard.push(change));
  for (const tell of listeners) tell({ part: "tools", origin: "github" });
  expect(heard).toHaveLength(1);
  for (const tell of listeners) tell({ part: "tools" });
  expect(heard).toHaveLength(3);
});

describe("a task of a tool", () => {
  const task = { ref: "7", createdAt: 0, updatedAt: 0, ttlMs: null };
  const create = (): { readonly inner: Provider; readonly calls: Operation[] } => {
    const calls: Operation[] = [];
    const tools = new Listing<Tool>([{ name: "dig", inputSchema: { type: "object" } }]);
    const inner: Provider = {
      list: (part) => (part === "tools" ? (tools as Listing<never>) : emptyListing),
      call: (operation): Outcome => {
        calls.push(operation);
        return { kind: "working", task };
      },
      watch: (target, _, listener) => {
        calls.push(createOperation("watch", target.name, { ref: target.ref }));
        listener({ kind: "task", outcome: { kind: "working", task } });
        return () => {};
      },
      offers: () => ({ serves: () => true }),
    };
    return { inner, calls };
  };
  const context = createCallContext();
  const begin = (name: string, args: object): Operation =>
    createOperation("tools/call", name, { arguments: args });

  test("that was called by call_tool is looked at, answered, cancelled and watched at that tool", async () => {
    const { inner, calls } = create();
    const provider = withSearch(inner);
    const begun = await provider.call(begin("call_tool", { name: "dig", arguments: { deep: 1 } }), context);
    const ref = begun.task?.ref ?? "";
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const outcome = await provider.call(createOperation(method, "call_tool", { ref }), context);
      expect(outcome.task?.ref).toBe(ref);
    }
    const notices: Notice[] = [];
    const target = { part: "tools", name: "call_tool", ref } as const;
    await provider.watch?.(target, context, (notice) => notices.push(notice));
    expect(notices).toMatchObject([{ outcome: { task: { ref } } }]);
    expect(calls.map(({ method, name, ref: own }) => [method, name, own])).toEqual([
      ["tools/call", "dig", undefined],
      ["tasks/get", "dig", "7"],
      ["tasks/update", "dig", "7"],
      ["tasks/cancel", "dig", "7"],
      ["watch", "dig", "7"],
    ]);
  });

  test.each(["", "7", "null", "{}", '["dig"]', '[1,"7"]'])("is not there under the ref %j", (ref) => {
    const { inner, calls } = create();
    const provider = withSearch(inner);
    expect(() => provider.call(createOperation("tasks/get", "call_tool", { ref }), context)).toThrow(
      "not found",
    );
    expect(calls).toEqual([]);
  });

  test("has the new name that a profile gives the tool", async () => {
    const { inner, calls } = create();
    const provider = withProfile(inner, { rename: { dig: "mine" } });
    const begun = await provider.call(begin("mine", {}), context);
    await provider.call(createOperation("tasks/get", "mine", { ref: begun.task?.ref }), context);
    expect(calls.map(({ name, ref }) => [name, ref])).toEqual([
      ["dig", undefined],
      ["dig", "7"],
    ]);
    expect(() => provider.call(createOperation("tasks/get", "dig", { ref: "7" }), context)).toThrow(
      "not found",
    );
  });
});
