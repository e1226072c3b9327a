import { describe, expect, test } from "vitest";
import {
  complete,
  getPrompt,
  listItems,
  readResource,
  valueOf,
  watchResource,
} from "../../../../test/support/use-provider.ts";
import { createCompletionRegistry } from "../../../server/src/registry/completion.ts";
import { createPromptRegistry, type PromptRegistry } from "../../../server/src/registry/prompts.ts";
import { createRegistry } from "../../../server/src/registry/registry.ts";
import { createResourceRegistry, type ResourceRegistry } from "../../../server/src/registry/resources.ts";
import { NotFoundError } from "../errors/index.ts";
import { createChanges } from "../provider/changes.ts";
import { createCallContext } from "../provider/context.ts";
import type { CallerInfo, Change, Provider } from "../provider/provider.ts";
import { compose } from "./compose.ts";

const context = createCallContext();
const quiet = { onListError: () => {} };

function resourcesOf(...uris: readonly string[]): ResourceRegistry {
  const resources = createResourceRegistry();
  for (const uri of uris) resources.register(uri, { name: uri }, () => `read ${uri}`);
  return resources;
}

function promptsOf(...names: readonly string[]): PromptRegistry {
  const prompts = createPromptRegistry();
  for (const name of names) prompts.register(name, {}, () => `prompt ${name}`);
  return prompts;
}

test("a composite offers what one of its providers offers, and nothing else", () => {
  const composite = compose({ a: createRegistry(), b: createRegistry({ prompts: promptsOf() }) });
  const { serves } = composite.offers(context);
  expect(["prompts/get", "resources/read", "completion/complete"].map(serves)).toEqual([true, false, false]);
});

describe("resources of a composite", () => {
  const first = resourcesOf("a:1", "both:1");
  first.registerTemplate("a:{id}", { name: "any a" }, ({ variables }) => `a ${variables["id"] ?? ""}`);
  const second = resourcesOf("b:1");
  second.register("both:1", { name: "both" }, () => "of the second");
  const composite = compose({
    none: createRegistry(),
    first: createRegistry({ resources: first }),
    second: createRegistry({ resources: second }),
  });

  test("keep their URIs, in the order of the providers, each listed once", async () => {
    const uris = (await listItems(composite, "resources")).map(({ uri }) => uri);
    expect(uris).toEqual(["a:1", "both:1", "b:1"]);
    expect(await listItems(composite, "templates")).toEqual([{ uriTemplate: "a:{id}", name: "any a" }]);
  });

  test.each([
    ["a:1", "read a:1"],
    ["b:1", "read b:1"],
    ["both:1", "read both:1"],
    ["a:7", "a 7"],
  ])("%s is read from the first provider that has it", async (uri, text) => {
    expect(valueOf(await readResource(composite, uri))).toEqual({ contents: [{ uri, text }] });
  });

  test("that no provider has are not found", async () => {
    const missing = new NotFoundError("resource", "c:1");
    await expect(readResource(composite, "c:1")).rejects.toEqual(missing);
    await expect(watchResource(composite, "c:1")).rejects.toEqual(missing);
  });

  test("are watched where they are", async () => {
    expect(await watchResource(composite, "b:1")).toBeTypeOf("function");
  });

  test("are listed as the same array while nothing changed", async () => {
    expect(await listItems(composite, "resources")).toBe(await listItems(composite, "resources"));
    expect(await listItems(composite, "templates")).toBe(await listItems(composite, "templates"));
  });

  test("are announced as changed only to the callers that their provider names", async () => {
    const source = createChanges();
    const only = (caller: CallerInfo): boolean => caller.caller === "ada";
    const announcing: Provider = { ...createRegistry(), onChange: source.onChange };
    const seen: Change[] = [];
    compose({ a: announcing, b: createRegistry() }).onChange?.((change) => seen.push(change));
    source.report({ part: "resources", isFor: only });
    await Promise.resolve();
    await Promise.resolve();
    const [change] = seen;
    expect(["ada", "bob"].map((caller) => change?.isFor?.({ ...context, caller }))).toEqual([true, false]);
  });

  test("cannot be watched when no provider lets them", () => {
    const { watch: _, ...unwatched } = resourcesOf("a:1");
    const composite = compose({ a: unwatched });
    expect(composite.offers(context).serves("resources/read")).toBe(true);
    expect(composite.watch).toBeUndefined();
  });

  test("of a provider that fails are listed as they last were, and hurt no other", async () => {
    let error: Error | undefined;
    const failing = resourcesOf("a:1");
    const unsteady: Provider = {
      ...failing,
      list: async (part, of) => {
        if (error !== undefined) throw error;
        return failing.list(part, of);
      },
    };
    const steady = createRegistry({ resources: resourcesOf("b:1") });
    const composite = compose({ unsteady, steady }, quiet);
    const list = async () => (await listItems(composite, "resources")).map(({ uri }) => uri);
    expect(await list()).toEqual(["a:1", "b:1"]);
    error = new Error("down");
    expect(await list()).toEqual(["a:1", "b:1"]);
    expect(await listItems(compose({ unsteady, steady }, quiet), "resources")).toHaveLength(1);
  });

  test("are not looked for elsewhere when their provider fails", async () => {
    const error = new Error("disk on fire");
    const broken = createResourceRegistry();
    broken.register("a:1", { name: "a" }, () => Promise.reject(error));
    const composite = compose({
      broken: createRegistry({ resources: broken }),
      other: createRegistry({ resources: resourcesOf("a:1") }),
    });
    await expect(readResource(composite, "a:1")).rejects.toBe(error);
  });
});

describe("prompts of a composite", () => {
  const a = promptsOf("review");
  const composite = compose({
    a: createRegistry({ prompts: a }),
    none: createRegistry(),
    b: createRegistry({ prompts: promptsOf("review", "plan") }),
  });

  test("are listed and got under qualified names", async () => {
    const names = (await listItems(composite, "prompts")).map(({ name }) => name);
    expect(names).toEqual(["a__review", "b__review", "b__plan"]);
    const outcome = await getPrompt(composite, "b__plan");
    expect(valueOf(outcome)).toMatchObject({ messages: [{ content: { text: "prompt plan" } }] });
  });

  test.each(["plan", "none__plan", "a__plan", "c__plan"])("%s is not one of them", async (name) => {
    const got = getPrompt(composite, name);
    await expect(got).rejects.toEqual(new NotFoundError("prompt", name));
  });

  test("that are gone are not found, under the name they were asked by", async () => {
    const prompts = promptsOf("old");
    const one = compose({ a: createRegistry({ prompts }) });
    await listItems(one, "prompts");
    prompts.unregister("old");
    const got = getPrompt(one, "a__old");
    await expect(got).rejects.toEqual(new NotFoundError("prompt", "a__old"));
  });
});

describe("completion in a composite", () => {
  function completing(prefix: string, template: string): Provider {
    const completion = createCompletionRegistry();
    completion.registerPrompt("review", "lang", (typed) => [`${prefix}${typed}`]);
    completion.registerTemplate(template, "id", (typed) => [`${prefix}${typed}`]);
    return createRegistry({ prompts: promptsOf("review"), completion });
  }
  const composite = compose({
    a: completing("a-", "a:{id}"),
    none: createRegistry({ prompts: promptsOf("review") }),
    b: completing("b-", "b:{id}"),
  });
  const argument = (name: string) => ({ argument: { name, value: "x" } });

  test("is asked of the prompt's owner under its own name", async () => {
    const ref = { type: "ref/prompt", name: "b__review" } as const;
    expect(await complete(composite, { ref, ...argument("lang") })).toMatchObject({
      values: ["b-x"],
    });
  });

  test("is asked of the first that knows the template", async () => {
    const ref = { type: "ref/resource", uri: "b:{id}" } as const;
    expect(await complete(composite, { ref, ...argument("id") })).toMatchObject({
      values: ["b-x"],
    });
  });

  test.each([
    { type: "ref/prompt", name: "c__review" } as const,
    { type: "ref/prompt", name: "none__review" } as const,
    { type: "ref/resource", uri: "c:{id}" } as const,
  ])("of something unknown is refused: %j", async (ref) => {
    const completed = complete(composite, { ref, ...argument("id") });
    await expect(completed).rejects.toMatchObject({
      code: expect.stringMatching(/^(provider\.not_found|rpc\.invalid_params)$/) as string,
    });
  });
});
