import { expect, test } from "vitest";
import { readResource } from "../../../../test/support/use-provider.ts";
import { RawJson } from "../json/raw.ts";
import type { Part } from "../mcp/methods.ts";
import { createCallContext } from "./context.ts";
import { emptyListing, Listing } from "./listing.ts";
import { type Middleware, withMiddleware } from "./middleware.ts";
import { createOperation } from "./operation.ts";
import type { Provider } from "./provider.ts";

/** A server on a file system that does not tell upper from lower case: it reads whatever it is asked for. */
function createFiles(): Provider {
  const uris = ["file:///open", "file:///Secret", "note://secret", "note://Secret"];
  const templates = ["vault://Keys/{id}", "day://{day}"];
  const lists: Partial<Record<Part, Listing<never>>> = {
    resources: new Listing(uris.map((uri) => ({ uri, name: uri }))) as Listing<never>,
    templates: new Listing(
      templates.map((uriTemplate) => ({ uriTemplate, name: uriTemplate })),
    ) as Listing<never>,
  };
  return {
    list: async (part) => lists[part] ?? emptyListing,
    call: async ({ name: uri }) => ({
      kind: "complete",
      result: RawJson.fromValue({ contents: [{ uri, text: uri.toLowerCase() }] }),
    }),
    offers: () => ({ serves: () => true }),
  };
}

test("a resource that a filter leaves out cannot be read in another case", async () => {
  const middleware: Middleware = {
    filterTools: (items) => items.filter((item) => !/file:.*secret|vault/i.test(JSON.stringify(item))),
  };
  const files = withMiddleware(createFiles(), [middleware]);
  const read = async (uri: string): Promise<string> => {
    const outcome = await readResource(files, uri);
    return outcome.kind === "complete" ? outcome.result.text : outcome.kind;
  };
  for (const uri of [
    "file:///Secret",
    "file:///secret",
    "FILE:///SECRET",
    "file:///%53ECRET",
    "file:///a/../SECRET",
  ])
    await expect(read(uri)).rejects.toThrow("not found");
  for (const uri of ["vault://Keys/1", "vault://keys/1", "VAULT://KEYS/1"])
    await expect(read(uri)).rejects.toThrow("not found");
  // What is listed can be read as it is written, whatever else there is.
  for (const uri of ["file:///open", "file:///OPEN", "note://secret", "note://Secret", "day://Monday"])
    expect(await read(uri)).toContain(JSON.stringify(uri));
});

test("a resource can be read when another that differs only in case is left out", async () => {
  const files = withMiddleware(createFiles(), [
    { filterTools: (items) => items.filter((item) => !("uri" in item && item.uri === "note://secret")) },
  ]);
  const read = async (uri: string): Promise<unknown> => readResource(files, uri);
  await expect(read("note://Secret")).resolves.toMatchObject({ kind: "complete" });
  for (const uri of ["note://secret", "note://SECRET"]) await expect(read(uri)).rejects.toThrow("not found");
});

test("a hook that only describes things reaches the children of a folder, and skills that it changes are left out", async () => {
  const uri = "skill://one/SKILL.md";
  const results: { readonly [method: string]: object } = {
    "resources/directory/read": { resources: [{ uri, name: "secret" }], extra: 1 },
    "skills/get": { skill: { uri, frontmatter: { name: "secret" }, resources: [{ uri, digest: "" }] } },
  };
  const inner: Provider = {
    list: () => emptyListing,
    call: ({ method }) => ({ kind: "complete", result: RawJson.fromValue(results[method]) }),
    offers: () => ({ serves: () => true }),
  };
  const hiding: Middleware = {
    isFilter: false,
    filterTools: (items) =>
      items.map((item) => (item.name === "secret" ? { ...item, name: "[redacted]" } : item)),
  };
  const provider = withMiddleware(inner, [hiding]);
  const call = async (method: string): Promise<unknown> => {
    const outcome = await provider.call(createOperation(method, uri), createCallContext());
    return outcome.kind === "complete" ? outcome.result.value : outcome.kind;
  };
  expect(await call("resources/directory/read")).toEqual({
    resources: [{ uri, name: "[redacted]" }],
    extra: 1,
  });
  await expect(call("skills/get")).rejects.toThrow("not found");
});
