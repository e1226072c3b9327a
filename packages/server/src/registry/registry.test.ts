import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { callTool, listTools, watchResource } from "../../../../test/support/use-provider.ts";
import { NotFoundError, SchemaError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { methods } from "../../../core/src/mcp/methods.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { Change } from "../../../core/src/provider/provider.ts";
import { createPromptRegistry } from "./prompts.ts";
import { createRegistry, type Registry } from "./registry.ts";
import { createResourceRegistry } from "./resources.ts";

const context = createCallContext();
const cityInput = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

async function call(registry: Registry, name: string, args: object = {}): Promise<unknown> {
  const outcome = await callTool(registry, name, RawJson.fromValue(args), context);
  return outcome.kind === "complete" ? outcome.result.value : outcome;
}

describe("registering", () => {
  test("lists what the tool says about itself, with its schemas", async () => {
    const registry = createRegistry();
    const output = { type: "object", properties: { celsius: { type: "number" } } };
    const icons = [{ src: "https://a.example/i.png" }];
    const spec = { title: "Weather", description: "Tells it", annotations: { readOnlyHint: true }, icons };
    registry.register("weather", { ...spec, input: cityInput, output, _meta: { a: 1 } }, () => ({}));
    expect(await listTools(registry, context)).toEqual([
      { name: "weather", ...spec, _meta: { a: 1 }, inputSchema: cityInput, outputSchema: output },
    ]);
  });

  test("without an input makes a tool that takes no arguments, and says so", async () => {
    const registry = createRegistry();
    registry.register("now", {}, (args) => Object.keys(args).length);
    expect(await listTools(registry, context)).toEqual([
      { name: "now", inputSchema: { type: "object", additionalProperties: false } },
    ]);
    expect(await call(registry, "now")).toMatchObject({ structuredContent: 0 });
    expect(await call(registry, "now", { tz: "UTC" })).toMatchObject({ isError: true });
  });

  test.each<[what: string, register: (registry: Registry) => void, error: string | typeof SchemaError]>([
    ["a bad name", (r) => r.register("two words", {}, () => ""), '"two words" cannot name a tool'],
    ["a taken name", (r) => r.register("taken", {}, () => ""), '"taken" is registered already'],
    [
      "an input that is not an object",
      // @ts-expect-error -- the compiler says so too
      (r) => r.register("x", { input: { type: "string" } }, () => ""),
      'Tool "x": input must be a schema with type "object" at its root, but has type "string"',
    ],
    // @ts-expect-error -- the compiler says so too
    ["an input that says no type", (r) => r.register("x", { input: {} }, () => ""), "but has no type"],
    [
      "an unknown dialect",
      (r) => r.register("x", { input: { type: "object", $schema: "a:b" } }, () => ""),
      SchemaError,
    ],
    [
      "a reference that leads out",
      (r) => r.register("x", { input: { type: "object", $ref: "https://a.example/s" } }, () => ""),
      SchemaError,
    ],
    [
      "a bad output schema",
      (r) => r.register("x", { output: { $ref: "#/nowhere" } }, () => ({})),
      SchemaError,
    ],
    [
      "a schema of zod without JSON",
      (r) => r.register("x", { input: z.object({ d: z.date() }) }, () => ""),
      "Date",
    ],
  ])("with %s throws at once and registers nothing", async (_, register, error) => {
    const registry = createRegistry();
    registry.register("taken", {}, () => "first");
    expect(() => register(registry)).toThrow(error);
    expect((await listTools(registry, context)).map(({ name }) => name)).toEqual(["taken"]);
    expect(await call(registry, "taken")).toMatchObject({ content: [{ text: "first" }] });
  });
});

describe("the list", () => {
  test("is the same array, of the same tools, until one comes or goes", async () => {
    const registry = createRegistry();
    registry.register("b", {}, () => "");
    registry.register("a", {}, () => "");
    const first = await listTools(registry, context);
    expect(first.map(({ name }) => name)).toEqual(["b", "a"]);
    await call(registry, "a");
    expect(await listTools(registry, context)).toBe(first);
    registry.register("c", {}, () => "");
    const second = await listTools(registry, context);
    expect(second).not.toBe(first);
    expect(second[0]).toBe(first[0]);
    expect(first).toHaveLength(2);
  });
});

describe("unregistering", () => {
  test("removes the tool, tells whether there was one, and frees its name", async () => {
    const registry = createRegistry();
    registry.register("a", {}, () => "old");
    expect([registry.unregister("a"), registry.unregister("a")]).toEqual([true, false]);
    expect(await listTools(registry, context)).toEqual([]);
    await expect(call(registry, "a")).rejects.toEqual(new NotFoundError("tool", "a"));
    registry.register("a", {}, () => "new");
    expect(await call(registry, "a")).toMatchObject({ content: [{ text: "new" }] });
  });

  test("leaves a call that runs alone", async () => {
    const registry = createRegistry();
    registry.register("a", {}, async () => {
      registry.unregister("a");
      await Promise.resolve();
      return "done";
    });
    expect(await call(registry, "a")).toMatchObject({ content: [{ text: "done" }] });
  });
});

describe("changes", () => {
  test("of many tools at once are reported once, and none to those who stopped listening", async () => {
    const registry = createRegistry();
    const [seen, unseen]: [Change[], Change[]] = [[], []];
    registry.onChange?.((change) => seen.push(change));
    registry.onChange?.((change) => unseen.push(change))();
    registry.register("a", {}, () => "");
    registry.register("b", {}, () => "");
    registry.unregister("a");
    registry.unregister("missing");
    await Promise.resolve();
    expect([seen, unseen]).toEqual([[{ part: "tools" }], []]);
  });

  test("of its resources and prompts are reported too, and updates to those who watch", async () => {
    const resources = createResourceRegistry();
    const prompts = createPromptRegistry();
    resources.register("a:1", { name: "a" }, () => "");
    const registry = createRegistry({ resources, prompts });
    const seen: unknown[] = [];
    await watchResource(registry, "a:1", (notice) => seen.push(notice));
    registry.onChange?.((change) => seen.push(change));
    prompts.register("p", {}, () => "");
    resources.updated("a:1");
    await Promise.resolve();
    expect(seen).toEqual(expect.arrayContaining([{ part: "prompts" }, { kind: "updated", uri: "a:1" }]));
    expect(seen).toHaveLength(2);
  });
});

test("what was not given is not offered", () => {
  const bare = createRegistry().offers(context);
  const served = [...methods.keys()].filter((method) => bare.serves(method));
  expect(served).toEqual(["tools/list", "tools/call"]);
  expect(bare.extensions).toEqual({});
});

describe("the arguments a handler gets", () => {
  const sources = [
    ["JSON Schema", { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }],
    ["zod", z.object({ n: z.int() })],
    ["valibot", toStandardJsonSchema(v.object({ n: v.pipe(v.number(), v.integer()) }))],
    ["arktype", type({ n: "number.integer" })],
  ] as const;

  test.each(sources)(
    "are checked with %s, and a failed check names the path and what was expected",
    async (_, input) => {
      const registry = createRegistry();
      let runs = 0;
      registry.register("t", { input }, () => `ran ${(runs += 1)}`);
      expect(await call(registry, "t", { n: 1 })).toEqual({ content: [{ type: "text", text: "ran 1" }] });
      for (const wrong of [{ n: "one" }, { n: 1.5 }, {}]) {
        expect(await call(registry, "t", wrong)).toEqual({
          content: [{ type: "text", text: expect.stringMatching(/^Invalid arguments: .*\bn\b/) as string }],
          isError: true,
        });
      }
      expect(runs).toBe(1);
    },
  );

  test.each([
    ["zod", z.object({ n: z.string().transform(Number), unit: z.string().default("C") })],
    [
      "valibot",
      toStandardJsonSchema(
        v.object({ n: v.pipe(v.string(), v.transform(Number)), unit: v.optional(v.string(), "C") }),
      ),
    ],
    ["arktype", type({ n: "string.numeric.parse", unit: "string = 'C'" })],
  ] as const)("are those %s made of them", async (_, input) => {
    const registry = createRegistry();
    registry.register("t", { input: input as never }, (args) => args);
    expect(await call(registry, "t", { n: "21" })).toMatchObject({ structuredContent: { n: 21, unit: "C" } });
  });

  test("have the types of their schema", () => {
    const registry = createRegistry();
    registry.register("zod", { input: z.object({ n: z.string().transform(Number) }) }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ n: number }>();
    });
    const valibot = toStandardJsonSchema(v.object({ unit: v.optional(v.string(), "C") }));
    registry.register("valibot", { input: valibot }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ unit: string }>();
    });
    registry.register("arktype", { input: type({ city: "string", "days?": "number" }) }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ city: string; days?: number }>();
    });
    registry.register("json", { input: { type: "object" } }, (args) => {
      expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
    });
    registry.register("none", {}, (args) => {
      expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
    });
    registry.register("stream", { input: z.object({ n: z.number() }) }, async function* (args, { signal }) {
      expectTypeOf(args).toEqualTypeOf<{ n: number }>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      yield "text";
    });
    // @ts-expect-error -- a handler takes what its schema gives
    registry.register("other", { input: z.object({ n: z.number() }) }, ({ n }: { n: string }) => n);
  });
});
