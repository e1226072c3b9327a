import { describe, expect, test } from "vitest";
import { compose, type ComposeOptions } from "../../packages/core/src/compose/compose.ts";
import { NotFoundError, RpcError } from "../../packages/core/src/errors/index.ts";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import type { Provider } from "../../packages/core/src/provider/provider.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { callTool, listTools, toProvider } from "../support/use-provider.ts";

/** The dialect of the seed document: names without a separator are tried on every provider in turn. */
const seed: ComposeOptions = { bareNames: "first_match" };
const context = createCallContext();

function registryOf(tools: { readonly [name: string]: string }): Registry {
  const registry = createRegistry();
  for (const [name, answer] of Object.entries(tools)) {
    registry.register(name, { description: `Answers ${answer}` }, () => answer);
  }
  return registry;
}

async function callText(provider: Provider, name: string): Promise<unknown> {
  const outcome = await callTool(provider, name);
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

async function namesOf(provider: Provider): Promise<readonly string[]> {
  return (await listTools(provider)).map(({ name }) => name);
}

const saying = (text: string): object => ({ content: [{ type: "text", text }] });
const notFound = (name: string): object => new NotFoundError("tool", name);

describe("seed 003, the composite", () => {
  test("default_is_empty: a composite of nothing has no tools", async () => {
    const composite = compose({}, seed);
    expect(await listTools(composite, context)).toEqual([]);
    expect(composite.namespaces).toEqual([]);
  });

  test("list_tools_all_prefixes_names: every tool is listed as namespace__tool", async () => {
    const composite = compose({ alpha: registryOf({ one: "1", two: "2" }), beta: registryOf({ one: "b" }) });
    expect(await namesOf(composite)).toEqual(["alpha__one", "alpha__two", "beta__one"]);
  });

  test("list_tools_all_preserves_descriptions: only the name of a definition changes", async () => {
    const registry = registryOf({ one: "1" });
    const [before] = await listTools(registry, context);
    const [after] = await listTools(compose({ alpha: registry }, seed), context);
    expect(after).toEqual({ ...before, name: "alpha__one", description: "Answers 1" });
  });

  test("call_tool_routes_by_namespace: a call reaches the provider its name says", async () => {
    const composite = compose({ alpha: registryOf({ run: "a" }), beta: registryOf({ run: "b" }) }, seed);
    expect(await callText(composite, "alpha__run")).toEqual(saying("a"));
    expect(await callText(composite, "beta__run")).toEqual(saying("b"));
  });

  test("call_tool_unknown_namespace_returns_not_found: nobody else is tried", async () => {
    const composite = compose({ alpha: registryOf({ run: "a" }) }, seed);
    await expect(callText(composite, "gamma__run")).rejects.toEqual(notFound("gamma__run"));
  });

  test("call_tool_unknown_tool_in_namespace_returns_not_found: the namespace alone is not enough", async () => {
    const composite = compose({ alpha: registryOf({ run: "a" }), beta: registryOf({ walk: "b" }) }, seed);
    await expect(callText(composite, "alpha__walk")).rejects.toEqual(notFound("alpha__walk"));
  });

  test("call_tool_without_namespace_tries_all: the first provider that has the tool answers", async () => {
    const alpha = registryOf({ run: "a" });
    const beta = registryOf({ run: "b", walk: "b walks" });
    const composite = compose({ alpha, beta }, seed);
    expect(await callText(composite, "run")).toEqual(saying("a"));
    expect(await callText(composite, "walk")).toEqual(saying("b walks"));
    expect(await callText(compose({ beta, alpha }, seed), "run")).toEqual(saying("b"));
  });

  test("call_tool_without_namespace_not_found: a composite of nothing has no tool of any name", async () => {
    await expect(callText(compose({}, seed), "run")).rejects.toEqual(notFound("run"));
  });

  test("provider_count: a composite knows its providers in the order they were given", () => {
    const composite = compose({ beta: createRegistry(), alpha: createRegistry() }, seed);
    expect(composite.namespaces).toEqual(["beta", "alpha"]);
  });

  test("call_tool_propagates_non_not_found_errors: any other error stops the search", async () => {
    const broken = new RpcError("rpc.internal", "out of order");
    const asked: string[] = [];
    const provider = (name: string, error: unknown): Provider =>
      toProvider([], () => {
        asked.push(name);
        return Promise.reject(error);
      });
    const providers = {
      first: provider("first", new NotFoundError("tool", "run")),
      second: provider("second", broken),
      third: provider("third", new NotFoundError("tool", "run")),
    };
    await expect(callText(compose(providers, seed), "run")).rejects.toBe(broken);
    expect(asked).toEqual(["first", "second"]);
  });

  test("call_tool_propagates_non_not_found_errors: a tool that fails has answered", async () => {
    const alpha = createRegistry({ onError: () => {} });
    alpha.register("run", {}, () => {
      throw new Error("boom");
    });
    const composite = compose({ alpha, beta: registryOf({ run: "b" }) }, seed);
    expect(await callText(composite, "run")).toMatchObject({ isError: true });
  });
});

describe("the protocol's default beside seed 003", () => {
  const providers = { alpha: registryOf({ run: "a" }), beta: registryOf({ run: "b" }) };

  test("a name without a namespace is looked up in the catalog like any other, and is not there", async () => {
    await expect(callText(compose(providers), "run")).rejects.toEqual(notFound("run"));
  });

  test("a name with a namespace is routed the same way", async () => {
    expect(await callText(compose(providers), "beta__run")).toEqual(saying("b"));
  });
});
