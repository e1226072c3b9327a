import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callTool, listTools } from "../../../../test/support/use-provider.ts";
import { createRegistry, type Registry } from "../../../server/src/registry/registry.ts";
import { createDeferred } from "../async/queue.ts";
import { NotFoundError, RpcError } from "../errors/index.ts";
import { RawJson } from "../json/raw.ts";
import type { Tool } from "../mcp/types.ts";
import { createCallContext } from "../provider/context.ts";
import type { ListedItem } from "../provider/filters.ts";
import { emptyListing, Listing } from "../provider/listing.ts";
import { withMiddleware } from "../provider/middleware.ts";
import type { Change, Provider, Outcome } from "../provider/provider.ts";
import { compose, type ComposeOptions } from "./compose.ts";

const context = createCallContext();
const tool = (name: string): Tool => ({ name, inputSchema: { type: "object" } });

/** A provider that can be made to fail, and counts how often it is listed. */
function createProvider(...names: readonly string[]) {
  const state = {
    tools: names.map(tool) as readonly Tool[],
    listing: new Listing<Tool>([]),
    error: undefined as Error | undefined,
    lists: 0,
  };
  const provider: Provider = {
    list: async (part) => {
      if (part !== "tools") return emptyListing;
      state.lists++;
      if (state.error !== undefined) throw state.error;
      return (state.listing =
        state.listing.items === state.tools ? state.listing : new Listing(state.tools)) as never;
    },
    call: async ({ name }) => {
      if (!state.tools.some((known) => known.name === name)) throw new NotFoundError("tool", name);
      return { kind: "complete", result: RawJson.fromValue({ content: [], called: name }) };
    },
    offers: () => ({ serves: () => true }),
  };
  return { provider, state };
}

function registryOf(...names: readonly string[]): Registry {
  const registry = createRegistry();
  for (const name of names) registry.register(name, {}, () => `called ${name}`);
  return registry;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const namesOf = async (provider: Provider, caller?: string): Promise<readonly string[]> =>
  (await listTools(provider, createCallContext({ caller }))).map(({ name }) => name);

const call = async (provider: Provider, name: string): Promise<Outcome> =>
  callTool(provider, name, {}, context);

async function called(provider: Provider, name: string): Promise<unknown> {
  const outcome = await call(provider, name);
  const { content } = (outcome.kind === "complete" ? outcome.result.value : {}) as {
    content?: readonly { readonly text: string }[];
  };
  return content?.[0]?.text;
}

describe("names in a composite", () => {
  test("are exact: a tool called b__c in a is not a tool c in a__b", async () => {
    const composite = compose({ a: registryOf("b__c", "b"), b: registryOf("c") });
    expect(await namesOf(composite)).toEqual(["a__b__c", "a__b", "b__c"]);
    expect(await called(composite, "a__b__c")).toBe("called b__c");
    expect(await called(composite, "b__c")).toBe("called c");
    expect(() => compose({ a: registryOf("b__c"), a__b: registryOf("c") })).toThrow(
      'The namespace "a__b" is ambiguous with the separator "__"',
    );
  });

  test.each(["__", "_", "-", ".", "/"] as const)(
    "use the separator %s when that is set",
    async (separator) => {
      const composite = compose({ a: registryOf("run"), b: registryOf("run") }, { separator });
      expect(await namesOf(composite)).toEqual([`a${separator}run`, `b${separator}run`]);
      expect(await called(composite, `b${separator}run`)).toBe("called run");
    },
  );

  test("that are too long or hold odd characters are called by what was listed, and by nothing else", async () => {
    const odd = "v1.get/user";
    const long = "x".repeat(100);
    const composite = compose({ a: registryOf(odd, long) });
    const listed = await namesOf(composite);
    for (const name of listed) expect(name).toMatch(/^a__[A-Za-z0-9_-]{1,61}$/);
    expect(await called(composite, listed[0]!)).toBe(`called ${odd}`);
    expect(await called(composite, listed[1]!)).toBe(`called ${long}`);
    await expect(call(composite, `a__${odd}`)).rejects.toBeInstanceOf(NotFoundError);
    await expect(call(composite, `a__${long}`)).rejects.toBeInstanceOf(NotFoundError);
  });

  test("never change because another provider came", async () => {
    const toolName = fc.stringMatching(/^[A-Za-z0-9_./-]{1,128}$/);
    const namespace = fc.stringMatching(/^[a-z0-9]{1,8}$/);
    const providers = fc.dictionary(namespace, fc.uniqueArray(toolName, { maxLength: 4 }), { maxKeys: 4 });
    await fc.assert(
      fc.asyncProperty(providers, providers, async (before, added) => {
        const toProviders = (named: { readonly [namespace: string]: readonly string[] }) =>
          Object.fromEntries(Object.entries(named).map(([key, names]) => [key, registryOf(...names)]));
        const first = await namesOf(compose(toProviders(before)));
        const second = await namesOf(compose(toProviders({ ...added, ...before })));
        expect(second).toEqual(expect.arrayContaining([...first]));
        expect(new Set(second).size).toBe(second.length);
      }),
    );
  });

  test("are those of both, when one provider has two namespaces", async () => {
    const registry = registryOf("run");
    const composite = compose({ a: registry, b: registry });
    expect(await namesOf(composite)).toEqual(["a__run", "b__run"]);
    expect(await called(composite, "b__run")).toBe("called run");
  });

  test("are listed once, also when a provider repeats itself", async () => {
    expect(await namesOf(compose({ a: createProvider("run", "run", "walk").provider }))).toEqual([
      "a__run",
      "a__walk",
    ]);
  });

  test("stay qualified in the error of a provider that no longer has the tool", async () => {
    const { provider, state } = createProvider("run");
    const composite = compose({ a: provider });
    await call(composite, "a__run");
    state.tools = [];
    await expect(call(composite, "a__run")).rejects.toEqual(new NotFoundError("tool", "a__run"));
  });
});

describe("a name without a namespace", () => {
  const providers = { a: registryOf("run"), b: registryOf("run", "walk") };
  const composed = (bareNames?: ComposeOptions["bareNames"]): Provider =>
    compose(providers, bareNames === undefined ? {} : { bareNames });

  test("is looked up like any other by default, and is not there", async () => {
    await expect(call(composed(), "walk")).rejects.toEqual(new NotFoundError("tool", "walk"));
    await expect(call(composed("exact"), "walk")).rejects.toEqual(new NotFoundError("tool", "walk"));
  });

  test("is tried on every provider in order with first_match", async () => {
    expect(await called(composed("first_match"), "walk")).toBe("called walk");
    await expect(call(composed("first_match"), "fly")).rejects.toEqual(new NotFoundError("tool", "fly"));
    expect(await called(composed("first_match"), "a__run")).toBe("called run");
  });

  test("is refused for its format with refuse", async () => {
    const refused = new RpcError("rpc.invalid_params", "Invalid tool name format: 'walk'");
    await expect(call(composed("refuse"), "walk")).rejects.toEqual(refused);
    await expect(call(composed("refuse"), "a__fly")).rejects.toEqual(new NotFoundError("tool", "a__fly"));
  });

  test("is tried under a dot too", async () => {
    const composite = compose(providers, { bareNames: "first_match", separator: "." });
    expect(await called(composite, "walk")).toBe("called walk");
    await expect(call(composite, "c.walk")).rejects.toBeInstanceOf(NotFoundError);
  });
});

describe("a provider that fails to list", () => {
  function composeWith(bad: Provider) {
    const errors: [string, unknown][] = [];
    const onListError = (namespace: string, error: unknown): void => void errors.push([namespace, error]);
    return { composite: compose({ bad, good: registryOf("run") }, { onListError }), errors };
  }

  test("is left out and reported, and the others are listed and called", async () => {
    const { provider, state } = createProvider("x");
    state.error = new Error("down");
    const { composite, errors } = composeWith(provider);
    expect(await namesOf(composite)).toEqual(["good__run"]);
    expect(await called(composite, "good__run")).toBe("called run");
    expect(errors).toEqual([["bad", state.error]]);
  });

  test("is listed as it last was", async () => {
    const { provider, state } = createProvider("x", "y");
    const { composite } = composeWith(provider);
    const before = await listTools(composite, context);
    state.error = new Error("down");
    expect(await listTools(composite, context)).toBe(before);
    state.error = undefined;
    state.tools = [tool("z")];
    expect(await namesOf(composite)).toEqual(["bad__z", "good__run"]);
  });

  test("is not listed to one caller as it last was to another", async () => {
    const { provider, state } = createProvider("open", "secret");
    const hide = (tools: readonly ListedItem[]): readonly ListedItem[] =>
      tools.filter(({ name }) => name !== "secret");
    const filtered = withMiddleware(provider, [
      { filterTools: (tools, { caller }) => (caller === "admin" ? tools : hide(tools)) },
    ]);
    const { composite } = composeWith(filtered);
    expect(await namesOf(composite, "admin")).toContain("bad__secret");
    expect(await namesOf(composite, "guest")).toEqual(["bad__open", "good__run"]);
    state.error = new Error("down");
    expect(await namesOf(composite, "admin")).toContain("bad__secret");
    expect(await namesOf(composite, "guest")).toEqual(["bad__open", "good__run"]);
    expect(await namesOf(composite, "stranger")).toEqual(["good__run"]);
  });

  test("does not swallow an abort of the caller", async () => {
    const { provider, state } = createProvider("x");
    state.error = new Error("down");
    const { composite, errors } = composeWith(provider);
    const signal = AbortSignal.abort(new Error("the caller left"));
    await expect(listTools(composite, createCallContext({ signal }))).rejects.toThrow("the caller left");
    expect(errors).toEqual([]);
  });

  test("by never answering holds up no call to the others", async () => {
    const stuck: Provider = {
      ...createProvider().provider,
      list: () => createDeferred<never>().promise,
    };
    expect(await called(compose({ stuck, good: registryOf("run") }), "good__run")).toBe("called run");
  });
});

describe("listing", () => {
  test("gives the same frozen array while no provider's list changed", async () => {
    const registry = registryOf("run");
    const composite = compose({ a: registry, b: createProvider("x").provider });
    const first = await listTools(composite, context);
    expect(await listTools(composite, context)).toBe(first);
    expect(Object.isFrozen(first)).toBe(true);
    registry.register("walk", {}, () => "");
    expect(await namesOf(composite)).toEqual(["a__run", "a__walk", "b__x"]);
  });

  test("does not happen on the way of a call whose name is known", async () => {
    const { provider, state } = createProvider("run");
    const other = createProvider("x");
    const composite = compose({ a: provider, b: other.provider });
    await listTools(composite, context);
    for (let i = 0; i < 100; i++) await call(composite, "a__run");
    expect([state.lists, other.state.lists]).toEqual([1, 1]);
  });

  test("happens again only for the provider that changed", async () => {
    const changing = registryOf("run");
    const other = createProvider("x");
    const composite = compose({ a: changing, b: other.provider });
    await listTools(composite, context);
    changing.unregister("run");
    await turn();
    await call(composite, "b__x");
    expect(other.state.lists).toBe(1);
    await expect(call(composite, "a__run")).rejects.toEqual(new NotFoundError("tool", "a__run"));
  });

  test("finds a tool that came later, without a change report", async () => {
    const { provider, state } = createProvider("run");
    const composite = compose({ a: provider });
    await listTools(composite, context);
    state.tools = [tool("walk")];
    await expect(call(composite, "a__walk")).resolves.toMatchObject({ kind: "complete" });
  });
});

describe("changes in a composite", () => {
  test("are those of every provider, until the listener stops", async () => {
    const [a, b] = [registryOf("run"), registryOf("run")];
    const seen: Change[] = [];
    const stop = compose({ a, b }).onChange?.((change) => seen.push(change));
    a.unregister("run");
    await turn();
    expect(seen).toEqual([{ part: "tools" }]);
    stop?.();
    b.unregister("run");
    await turn();
    expect(seen).toHaveLength(1);
  });

  test("are not promised when no provider reports any", () => {
    expect(compose({ a: createProvider("x").provider }).onChange).toBeUndefined();
  });

  test("of two providers at once are one change", async () => {
    const [a, b] = [registryOf("run"), registryOf("run")];
    const seen: Change[] = [];
    compose({ a, b }).onChange?.((change) => seen.push(change));
    a.unregister("run");
    b.unregister("run");
    await turn();
    expect(seen).toEqual([{ part: "tools" }]);
  });
});
