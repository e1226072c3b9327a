import { describe, expect, test } from "vitest";
import { listItems, readResource, watchResource } from "../../../../test/support/use-provider.ts";
import { NotFoundError, UriTemplateError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { elicit } from "../../../core/src/mcp/question.ts";
import { inputRequired } from "../../../core/src/provider/content.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { createOperation } from "../../../core/src/provider/operation.ts";
import { createResourceRegistry, type ReadResult, type ResourceRegistry } from "./resources.ts";

const context = createCallContext();

async function read(resources: ResourceRegistry, uri: string): Promise<unknown> {
  const outcome = await readResource(resources, uri);
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

function resourcesOf(result: ReadResult, mimeType?: string): ResourceRegistry {
  const resources = createResourceRegistry();
  resources.register("a:1", { name: "one", ...(mimeType === undefined ? {} : { mimeType }) }, () => result);
  return resources;
}

function listen(resources: ResourceRegistry): unknown[] {
  const seen: unknown[] = [];
  resources.onChange?.((change) => seen.push(change));
  return seen;
}

describe("reading a resource", () => {
  test("gives text for a string and a blob for bytes, with the type it was registered with", async () => {
    expect(await read(resourcesOf("hi", "text/plain"), "a:1")).toEqual({
      contents: [{ uri: "a:1", mimeType: "text/plain", text: "hi" }],
    });
    expect(await read(resourcesOf(Uint8Array.of(104, 105)), "a:1")).toEqual({
      contents: [{ uri: "a:1", blob: "aGk=" }],
    });
  });

  test("gives contents as they are, one or several", async () => {
    const one = { uri: "a:1/x", text: "x" };
    const two = { uri: "a:1/y", blob: "" };
    expect(await read(resourcesOf(one), "a:1")).toEqual({ contents: [one] });
    expect(await read(resourcesOf([one, two]), "a:1")).toEqual({ contents: [one, two] });
    expect(await read(resourcesOf([]), "a:1")).toEqual({ contents: [] });
  });

  test("of an unknown URI is not found", async () => {
    await expect(read(resourcesOf("x"), "a:2")).rejects.toEqual(new NotFoundError("resource", "a:2"));
  });

  test("may ask, and gets the answers on the next round", async () => {
    const resources = createResourceRegistry();
    resources.register("a:1", { name: "one" }, ({ answers, state }) =>
      answers.elicited("sure")?.action === "accept"
        ? `state ${String(state)}`
        : inputRequired({ sure: elicit("Sure?", {}) }, 7),
    );
    expect(await read(resources, "a:1")).toMatchObject({ kind: "input_required", state: 7 });
    const round = { answers: { sure: RawJson.fromText('{"action":"accept"}') }, state: 7 };
    const outcome = await resources.call(createOperation("resources/read", "a:1", { round }), context);
    expect(outcome.kind === "complete" && outcome.result.value).toEqual({
      contents: [{ uri: "a:1", text: "state 7" }],
    });
  });
});

describe("a template", () => {
  function repositories(): ResourceRegistry {
    const resources = createResourceRegistry();
    const show =
      (from: string) =>
      ({ uri, variables }: { uri: string; variables: object }) =>
        `${from} ${uri} ${JSON.stringify(variables)}`;
    resources.registerTemplate(
      "repo://{owner}/{name}",
      { name: "repo", mimeType: "text/plain" },
      show("first"),
    );
    resources.registerTemplate("repo://{owner}/{+rest}", { name: "rest" }, show("second"));
    resources.register("repo://octo/plain", { name: "plain" }, show("plain"));
    return resources;
  }

  test("serves every URI that fits, with its variables decoded", async () => {
    expect(await read(repositories(), "repo://octo/hello%20you")).toEqual({
      contents: [
        {
          uri: "repo://octo/hello%20you",
          mimeType: "text/plain",
          text: 'first repo://octo/hello%20you {"owner":"octo","name":"hello you"}',
        },
      ],
    });
  });

  test("comes after plain resources, and earlier ones before later", async () => {
    expect(await read(repositories(), "repo://octo/plain")).toMatchObject({
      contents: [{ text: "plain repo://octo/plain {}" }],
    });
    expect(await read(repositories(), "repo://octo/a/b")).toMatchObject({
      contents: [{ text: 'second repo://octo/a/b {"owner":"octo","rest":"a/b"}' }],
    });
  });

  test("is listed beside resources, not among them, and can be removed", async () => {
    const resources = repositories();
    expect((await listItems(resources, "templates")).map(({ uriTemplate }) => uriTemplate)).toEqual([
      "repo://{owner}/{name}",
      "repo://{owner}/{+rest}",
    ]);
    expect(await listItems(resources, "resources")).toEqual([{ uri: "repo://octo/plain", name: "plain" }]);
    expect(resources.unregister("repo://{owner}/{+rest}")).toBe(true);
    await expect(read(resources, "repo://octo/a/b")).rejects.toBeInstanceOf(NotFoundError);
  });

  test("that is malformed is refused when it is registered", () => {
    const register = () =>
      createResourceRegistry().registerTemplate("repo://{owner", { name: "x" }, () => "");
    expect(register).toThrow(UriTemplateError);
  });
});

describe("a resource registry", () => {
  test("refuses a URI that is taken", () => {
    expect(() => resourcesOf("x").register("a:1", { name: "again" }, () => "")).toThrow(
      'The resource "a:1" is registered already; unregister it first',
    );
  });

  test("lists the same array until a resource comes or goes", async () => {
    const resources = resourcesOf("x");
    const first = await listItems(resources, "resources");
    expect(await listItems(resources, "resources")).toBe(first);
    resources.updated("a:1");
    expect(await listItems(resources, "resources")).toBe(first);
    expect([resources.unregister("a:1"), resources.unregister("a:1")]).toEqual([true, false]);
    expect(await listItems(resources, "resources")).toEqual([]);
  });

  test("tells those who watch what was updated, and everybody which lists changed", async () => {
    const resources = resourcesOf("x");
    const seen = listen(resources);
    await watchResource(resources, "a:1", (notice) => seen.push(notice));
    resources.updated("a:1");
    resources.updated("a:1");
    resources.register("a:2", { name: "two" }, () => "");
    await Promise.resolve();
    expect(seen).toHaveLength(2);
    expect(seen).toEqual(expect.arrayContaining([{ kind: "updated", uri: "a:1" }, { part: "resources" }]));
  });

  test("lets what exists be watched, by URI or by template, and nothing else", async () => {
    const resources = resourcesOf("x");
    resources.registerTemplate("b:{id}", { name: "b" }, () => "");
    for (const uri of ["a:1", "b:7"]) expect(await watchResource(resources, uri)).toBeTypeOf("function");
    await expect(watchResource(resources, "c:1")).rejects.toEqual(new NotFoundError("resource", "c:1"));
  });
});
