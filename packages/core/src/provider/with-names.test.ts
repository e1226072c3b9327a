import { describe, expect, test } from "vitest";
import { NotFoundError } from "../errors/index.ts";
import { RawJson } from "../json/raw.ts";
import type { Items, Part } from "../mcp/index.ts";
import { createCallContext } from "./context.ts";
import { emptyListing, Listing } from "./listing.ts";
import { createOperation } from "./operation.ts";
import type { Notice, Operation, Outcome, Provider } from "./provider.ts";
import { renameAt, withNames } from "./with-names.ts";

const context = createCallContext();
const complete = (text: string): Outcome => ({ kind: "complete", result: RawJson.fromText(text) });

interface Inner extends Provider {
  readonly calls: Operation[];
  notify(notice: Notice): void;
}

/** A provider that has one thing in each list, and answers with a text. */
function createInner(answer = "{}"): Inner {
  const tool: Items["tools"] = {
    name: "in_echo",
    inputSchema: { type: "object" },
    _meta: { ui: { resourceUri: "ui://in/page" } },
  };
  const file = { uri: "skill://in/a/SKILL.md", digest: "sha256:0" };
  const listings: { readonly [P in Part]: Listing<Items[P]> } = {
    tools: new Listing([tool], { meta: { note: 1 } }),
    prompts: new Listing([{ name: "in_ask" }]),
    resources: new Listing([{ uri: "note://in/a", name: "a" }]),
    templates: emptyListing,
    groups: emptyListing,
    skills: new Listing([{ uri: file.uri, frontmatter: { name: "a", description: "a" }, resources: [file] }]),
  };
  const calls: Operation[] = [];
  const listeners = new Set<(notice: Notice) => void>();
  return {
    calls,
    notify: (notice) => listeners.forEach((listener) => listener(notice)),
    list: (part) => listings[part],
    call: (operation) => {
      calls.push(operation);
      const { part, name } = operation;
      if (name.includes("gone")) throw new NotFoundError(part === "tools" ? "tool" : "resource", name);
      return complete(answer);
    },
    watch: (target, _, listener) => {
      calls.push({ ...createOperation("watch", target.name), ref: target.ref });
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    offers: () => ({ serves: () => true }),
  };
}

const outward = (name: string): string => name.replace(/^in_|(?<=:\/\/)in\//, "");
const inward = (name: string): string =>
  name.includes("://") ? name.replace("://", "://in/") : `in_${name}`;
const named = (inner: Provider): Provider =>
  withNames(inner, {
    parts: ["tools", "prompts", "resources", "templates", "skills"],
    toInner: (_, name) => (name === "unknown" ? undefined : inward(name)),
    toOuter: (_, name) => outward(name),
  });

describe("a provider under other names", () => {
  test("lists and finds everything under them, and a list that did not change is the same", async () => {
    const provider = named(createInner());
    const tools = await provider.list("tools", context);
    expect(tools.items).toMatchObject([{ name: "echo", _meta: { ui: { resourceUri: "ui://page" } } }]);
    expect(tools.meta).toEqual({ note: 1 });
    expect(await provider.list("tools", context)).toBe(tools);
    expect((await provider.list("resources", context)).items).toMatchObject([{ uri: "note://a" }]);
    expect((await provider.list("skills", context)).items).toMatchObject([
      { uri: "skill://a/SKILL.md", resources: [{ uri: "skill://a/SKILL.md" }] },
    ]);
    const entry = await provider.find?.("tools", "echo", context);
    expect(entry).toMatchObject({ key: "echo", item: { name: "echo" } });
    expect(entry?.item).toBe(tools.items[0]);
    expect(await provider.find?.("tools", "unknown", context)).toBeUndefined();
  });

  test("passes on an operation as it came, but for its name", async () => {
    const inner = createInner();
    const params = RawJson.fromText('{"name":"echo","x":1.0}');
    await named(inner).call(createOperation("tools/call", "echo", { params, ref: "7" }), context);
    expect(inner.calls).toMatchObject([{ name: "in_echo", ref: "7" }]);
    expect(inner.calls[0]?.params).toBe(params);
  });

  test("names what is missing as the caller did", () => {
    const provider = named(createInner());
    const call = (method: string, name: string, ref?: string) => () =>
      provider.call(createOperation(method, name, { ref }), context);
    expect(call("tools/call", "gone")).toThrow(new NotFoundError("tool", "gone"));
    expect(call("resources/read", "note://gone")).toThrow(new NotFoundError("resource", "note://gone"));
    expect(call("tools/call", "unknown")).toThrow(new NotFoundError("tool", "unknown"));
    expect(call("tasks/get", "unknown", "7")).toThrow(new NotFoundError("task", "7"));
  });

  test("renames the URIs of a result and of what is watched", async () => {
    const inner = createInner('{"content":[{"type":"resource_link","uri":"note://in/a","x":1.0}]}');
    const provider = named(inner);
    const outcome = await provider.call(createOperation("tools/call", "echo"), context);
    expect(outcome).toMatchObject({ kind: "complete" });
    const notices: Notice[] = [];
    const target = { part: "resources", name: "note://a", ref: undefined } as const;
    await provider.watch?.(target, context, (notice) => notices.push(notice));
    expect(inner.calls.at(-1)).toMatchObject({ name: "note://in/a" });
    const params = RawJson.fromText('{"uri":"note://in/a","x":1.0}');
    inner.notify({ kind: "updated", uri: "note://in/a", params });
    inner.notify({ kind: "task", outcome: complete('{"content":[{"uri":"note://in/b"}]}') });
    expect(notices).toMatchObject([{ kind: "updated", uri: "note://a" }, { kind: "task" }]);
    expect(textsOf([outcome, ...notices])).toEqual([
      '{"content":[{"type":"resource_link","uri":"note://a","x":1.0}]}',
      '{"uri":"note://a","x":1.0}',
      '{"content":[{"uri":"note://b"}]}',
    ]);
  });

  test("leaves the parts that it does not name as they are", async () => {
    const inner = createInner('{"contents":[{"uri":"note://in/a"}]}');
    const provider = withNames(inner, {
      parts: ["tools"],
      toInner: (_, name) => inward(name),
      toOuter: (_, name) => outward(name),
    });
    expect(await provider.list("prompts", context)).toBe(await inner.list("prompts", context));
    const operation = createOperation("resources/read", "note://in/a");
    const outcome = await provider.call(operation, context);
    expect(inner.calls[0]).toBe(operation);
    expect(textsOf([outcome])).toEqual(['{"contents":[{"uri":"note://in/a"}]}']);
  });
});

function textsOf(things: readonly (Outcome | Notice)[]): readonly string[] {
  return things.flatMap((thing): readonly string[] => {
    if ("outcome" in thing) return textsOf([thing.outcome]);
    if ("params" in thing) return thing.params === undefined ? [] : [thing.params.text];
    return "result" in thing ? [thing.result.text] : [];
  });
}

describe("renaming at places", () => {
  const rename = (uri: string): string => uri.replace("a://", "b://");
  const places = ["content.*.uri", "content.*.resource.uri"];

  test.each([
    [
      '{ "content" : [ {"uri":"a://1", "n":1.0 } ,{"text":"a://2"}] }',
      '{ "content" : [{"uri":"b://1", "n":1.0 },{"text":"a://2"}] }',
    ],
    ['{"content":[{"resource":{"\\u0075ri":"a://1"}}]}', '{"content":[{"resource":{"\\u0075ri":"b://1"}}]}'],
    [
      '{"_meta":{"ui":{"resourceUri":"a://1","x":1e400},"ui/resourceUri":"a://1"}}',
      '{"_meta":{"ui":{"resourceUri":"b://1","x":1e400},"ui/resourceUri":"b://1"}}',
    ],
  ])("leaves every other member of %s as it was", (text, renamed) => {
    expect(renameAt(RawJson.fromText(text), places, rename).text.replaceAll(" ", "")).toBe(
      renamed.replaceAll(" ", ""),
    );
  });

  test.each([
    '{"content":[{"uri":"c://1"}]}',
    '{"content":{"uri":"a://1"}}',
    '{"uri":7,"content":[1,null]}',
    "{}",
  ])("gives back %s, which has nothing to rename", (text) => {
    const raw = RawJson.fromText(text);
    expect(renameAt(raw, places, rename)).toBe(raw);
  });
});
