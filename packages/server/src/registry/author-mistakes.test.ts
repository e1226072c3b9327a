// What authors of tools write wrong in plain JavaScript. Each mistake is an error that names the thing, the member and what to write: at
// registration where it can be known then, and else in the log.
import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { listItems } from "../../../../test/support/use-provider.ts";
import { connect } from "../../../client/src/client/connect.ts";
import { elicit, elicitUrl, sample } from "../../../core/src/mcp/question.ts";
import {
  inputRequired,
  audio,
  embedResource,
  image,
  resourceLink,
  structured,
  text,
} from "../../../core/src/provider/content.ts";
import { Listing } from "../../../core/src/provider/listing.ts";
import { type Middleware, withMiddleware } from "../../../core/src/provider/middleware.ts";
import type { Provider } from "../../../core/src/provider/provider.ts";
import { createServer, type ServerInfo, type ServerOptions } from "../wire/server.ts";
import { type Completer, createCompletionRegistry } from "./completion.ts";
import type { ToolContext } from "./event.ts";
import { createPromptRegistry, type PromptRegistry } from "./prompts.ts";
import { createRegistry, type Registry, type RegistryOptions } from "./registry.ts";
import { createResourceRegistry, type ResourceRegistry } from "./resources.ts";

const info = { name: "test", version: "1" };
/** The compiler refuses most of these. */
const wrong = (value: unknown): never => value as never;
const nothing = (): string => "";

describe("registering a tool is refused with", () => {
  test.each<[spec: object, message: string]>([
    [{ description: 5 }, 'Tool "t": description cannot be used: number 5 is not a string'],
    [{ title: {} }, 'Tool "t": title cannot be used: object is not a string'],
    [
      { annotations: { readOnlyHint: "yes" } },
      'annotations.readOnlyHint cannot be used: string "yes" is not a boolean',
    ],
    [
      { annotations: { readOnly: true } },
      'annotations has no option "readOnly"; did you mean "readOnlyHint"?',
    ],
    [{ icons: ["x.png"] }, 'Tool "t": icons[0] cannot be used: string "x.png" is not an object'],
    [
      { icons: [{ src: "/x.png" }] },
      'Tool "t": icons[0].src cannot be used: string "/x.png" is not an absolute URI',
    ],
    [
      { icons: [{ src: "https://a.example/x.png", size: "1x1" }] },
      'icons[0] has no option "size"; did you mean "sizes"?',
    ],
    [{ _meta: "x" }, 'Tool "t": _meta cannot be used: string "x" is not an object'],
    [{ askFirst: nothing }, 'Tool "t": askFirst must be a function, and needs task'],
    [{ task: "optional", askFirst: "x" }, 'Tool "t": askFirst must be a function'],
    [{ input: [] }, 'Tool "t": input: A schema must be an object, but is array of 0'],
    [{ output: "string" }, 'Tool "t": output: A schema must be an object, but is string "string"'],
    [{ input: v.object({}) }, 'Tool "t": input: A valibot schema cannot say its own JSON Schema'],
    [
      { input: { type: "object", properties: { a: { type: "strin" } } } },
      'at /properties/a has the type "strin"; did you mean string?',
    ],
    [
      { input: { type: "object", properties: { a: "string" } } },
      'has the property "a" that is string "string"; write { type: "string" }',
    ],
    [
      { input: { type: "object", properties: { a: { type: "string", required: true } } } },
      "at /properties/a has required: true; write the names in the object around it",
    ],
    [
      { input: { type: "object", required: "a" } },
      'has a required that is string "a"; write an array of names',
    ],
    [{ input: { type: "object", properties: { a: { enum: "x" } } } }, 'has an enum that is string "x"'],
    [
      { input: { type: "object", properties: { a: { type: "string", pattern: "(" } } } },
      'has the pattern "(", which is not a regular expression',
    ],
  ])("%j", (spec, message) => {
    expect(() => createRegistry().register("t", wrong(spec), nothing)).toThrow(message);
  });

  test("schemas that look odd and are right are taken", () => {
    const registry = createRegistry();
    const properties = {
      type: { type: ["string", "null"] },
      required: { type: "boolean" },
      pattern: { type: "string", pattern: "\\_" },
      enum: { enum: ["a"] },
      any: true,
      data: { const: { type: "strin", required: true } },
    };
    registry.register("odd", { input: { type: "object", properties, required: ["type"] } }, nothing);
    registry.register("none", wrong({ description: undefined, icons: undefined }), nothing);
    expect(listItems(registry, "tools")).toHaveLength(2);
  });
});

describe("registering a prompt is refused with", () => {
  const list = 'Prompt "p": arguments must be an array such as [{ name: "city", required: true }], but is';
  test.each<[label: string, use: (prompts: PromptRegistry) => void, message: string]>([
    [
      "a schema of zod",
      (p) => p.register("p", wrong({ arguments: z.object({}) }), nothing),
      `${list} a schema`,
    ],
    [
      "a schema of arktype",
      (p) => p.register("p", wrong({ arguments: type({}) }), nothing),
      `${list} a schema`,
    ],
    ["an object", (p) => p.register("p", wrong({ arguments: { city: {} } }), nothing), `${list} object`],
    ["a text", (p) => p.register("p", wrong({ arguments: "city" }), nothing), `${list} string "city"`],
    [
      "names alone",
      (p) => p.register("p", wrong({ arguments: ["city"] }), nothing),
      'arguments[0] cannot be used: string "city" is not an object',
    ],
    [
      "no name",
      (p) => p.register("p", wrong({ arguments: [{ nam: "a" }] }), nothing),
      "arguments[0] cannot be used: its name is missing",
    ],
    [
      "another key",
      (p) => p.register("p", wrong({ arguments: [{ name: "a", require: true }] }), nothing),
      'arguments[0] has no option "require"; did you mean "required"?',
    ],
    [
      "a wrong type",
      (p) => p.register("p", wrong({ arguments: [{ name: "a", required: "yes" }] }), nothing),
      "arguments[0].required cannot be used",
    ],
    [
      "a name twice",
      (p) => p.register("p", { arguments: [{ name: "a" }, { name: "a" }] }, nothing),
      'two arguments have the name "a"',
    ],
    [
      "the key of other libraries",
      (p) => p.register("p", wrong({ argsSchema: {} }), nothing),
      'did you mean "arguments"?',
    ],
    [
      "an empty name",
      (p) => p.register("", {}, nothing),
      'Prompt "": the name must be a text that is not empty',
    ],
    ["a number as name", (p) => p.register(wrong(5), {}, nothing), "Prompt 5: the name must be a text"],
    [
      "no spec",
      (p) => p.register("p", wrong(nothing), wrong(undefined)),
      'Prompt "p": the spec is missing; write register(name, {}, handler)',
    ],
    [
      "a wrong icon",
      (p) => p.register("p", wrong({ icons: "x" }), nothing),
      'Prompt "p": icons cannot be used',
    ],
  ])("%s", (_, use, message) => {
    expect(() => use(createPromptRegistry())).toThrow(message);
  });
});

describe("registering a resource or template is refused with", () => {
  const name = "b";
  test.each<[label: string, use: (resources: ResourceRegistry) => void, message: string]>([
    [
      "a relative URI",
      (r) => r.register("b", { name }, nothing),
      'Resource "b": the URI must be an absolute one, such as config://app',
    ],
    ["a number as URI", (r) => r.register(wrong(5), { name }, nothing), "Resource 5: the URI must be"],
    [
      "no name",
      (r) => r.register("a:b", wrong({}), nothing),
      'Resource "a:b": the name must be a text that is not empty',
    ],
    [
      "no spec",
      (r) => r.register("a:b", wrong(nothing), wrong(undefined)),
      'Resource "a:b": the spec is missing; write register(uri, { name }, read)',
    ],
    [
      "a wrong size",
      (r) => r.register("a:b", wrong({ name, size: "5" }), nothing),
      'size cannot be used: string "5" is not a size in bytes',
    ],
    [
      "a wrong type",
      (r) => r.register("a:b", wrong({ name, mimeType: 5 }), nothing),
      "mimeType cannot be used",
    ],
    [
      "a wrong audience",
      (r) => r.register("a:b", wrong({ name, annotations: { audience: "user" } }), nothing),
      "annotations.audience cannot be used",
    ],
    [
      "a template without a name",
      (r) => r.registerTemplate("a:{b}", wrong({}), nothing),
      'Resource template "a:{b}": the name must be',
    ],
    [
      "a number as template",
      (r) => r.registerTemplate(wrong(5), { name }, nothing),
      "Resource template 5: the template must be a string",
    ],
    [
      "a template without a spec",
      (r) => r.registerTemplate("a:{b}", wrong(nothing), wrong(undefined)),
      "write registerTemplate(uriTemplate, { name }, read)",
    ],
  ])("%s", (_, use, message) => {
    expect(() => use(createResourceRegistry())).toThrow(message);
  });
});

test.each<[argument: unknown, completer: unknown, message: string]>([
  ["city", undefined, "Completion of prompt p, city: the completer must be a function"],
  ["city", ["Bern"], "but is array of 1"],
  [nothing, undefined, "Completion of prompt p: the name of the argument must be a string, but is function"],
])("registering the completion of %s with %j is refused", (argument, completer, message) => {
  expect(() => createCompletionRegistry().registerPrompt("p", wrong(argument), wrong(completer))).toThrow(
    message,
  );
});

test.each<[template: unknown, variable: unknown, message: string]>([
  [5, "day", "Completion of a resource template: the template must be a string"],
  ["log://{day}", "dya", 'Completion of resource log://{day}: it has no variable "dya"; did you mean day?'],
  ["log://{day}", "week", "its variables are day"],
  ["log://{day}", 5, "the name of the argument must be a string, but is number 5"],
])("registering the completion of template %j, variable %j, is refused", (template, variable, message) => {
  const { registerTemplate } = createCompletionRegistry();
  expect(() => registerTemplate(wrong(template), wrong(variable), () => [])).toThrow(message);
});

test.each([[undefined], [""], [{ name: "p" }]])(
  "registering the completion of prompt %j is refused",
  (prompt) => {
    const { registerPrompt } = createCompletionRegistry();
    expect(() => registerPrompt(wrong(prompt), "city", () => [])).toThrow(
      "the name of the prompt must be a text",
    );
  },
);

test("a second completer of an argument is refused", () => {
  const completion = createCompletionRegistry();
  completion.registerTemplate("a:{b}", "b", () => []);
  expect(() => completion.registerTemplate("a:{b}", "b", () => [])).toThrow("is registered already");
});

describe("what a handler gives is refused, and the log says whose it is:", () => {
  async function serve(
    fill: (registries: {
      prompts: PromptRegistry;
      resources: ResourceRegistry;
      complete: (by: Completer) => void;
    }) => void,
    use: (client: Awaited<ReturnType<typeof connect>>) => Promise<unknown>,
  ): Promise<string> {
    const prompts = createPromptRegistry();
    const resources = createResourceRegistry();
    const completion = createCompletionRegistry();
    fill({ prompts, resources, complete: (by) => completion.registerPrompt("p", "a", by) });
    const errors: unknown[] = [];
    const server = createServer(createRegistry({ prompts, resources, completion }), info, {
      onError: (error) => void errors.push(error),
    });
    await using client = await connect({ server });
    await expect(use(client)).rejects.toMatchObject({ rpcCode: -32603, message: "Internal error" });
    expect(errors).toHaveLength(1);
    return String(errors[0]);
  }

  test.each<[given: unknown, message: string]>([
    [undefined, 'Prompt "p": the handler gave undefined; it must give a string, or messages'],
    [5, 'Prompt "p": the handler gave number 5'],
    [{ role: "user", content: text("x") }, 'Prompt "p": the handler gave object'],
    [[{ role: "user", content: "x" }], 'messages[0] whose content is string "x"; write { type: "text"'],
    [
      [{ role: "system", content: text("x") }],
      'messages[0] with the role string "system"; the roles are user',
    ],
    [[{ role: "user", content: { type: "img" } }], 'unknown type "img"; did you mean "image"?'],
    [["x"], "messages[0] with the role undefined"],
    [{ messages: "x" }, 'Prompt "p": the handler gave string "x"'],
  ])("%j of a prompt", async (given, message) => {
    const said = await serve(
      ({ prompts }) => prompts.register("p", {}, () => wrong(given)),
      (client) => client.getPrompt("p"),
    );
    expect(said).toContain(message);
  });

  test.each<[given: unknown, message: string]>([
    [{ a: 1 }, 'Resource "a:b": the reader gave object; it must give a string, a Uint8Array, or contents'],
    [undefined, 'Resource "a:b": the reader gave undefined'],
    [{ text: "x" }, 'Resource "a:b": the reader gave object'],
    [{ uri: "a:b" }, 'Resource "a:b": the reader gave object'],
    [{ uri: "a:b", text: { a: 1 } }, "write JSON.stringify(value)"],
    [{ uri: "a:b", blob: new Uint8Array(2) }, "{ uri, blob } with base64"],
    [{ contents: [] }, 'Resource "a:b": the reader gave object'],
    [["x"], 'the reader gave string "x" at [0]'],
  ])("%j of a reader", async (given, message) => {
    const said = await serve(
      ({ resources }) => resources.register("a:b", { name: "b" }, () => wrong(given)),
      (client) => client.readResource("a:b"),
    );
    expect(said).toContain(message);
  });

  test.each([["x"], [[1, 2]], [{ values: ["x"] }], [undefined], [new Set(["x"])]])(
    "%j of a completer",
    async (given) => {
      const said = await serve(
        ({ complete }) => complete(() => wrong(given)),
        (client) => client.complete({ type: "ref/prompt", name: "p" }, { name: "a", value: "" }),
      );
      expect(said).toContain("Completion of prompt p, a: the completer gave");
    },
  );
});

test.each<[what: string, use: (context: ToolContext) => unknown, message: string]>([
  [
    "progress in words",
    ({ progress }) => progress(wrong("half")),
    'Write context.progress(number, total, message): it was called with arguments whose "progress" is string "half"; it must be a number',
  ],
  [
    "a message in place of the total",
    ({ progress }) => progress(1, wrong("half")),
    'whose "total" is string "half"',
  ],
  [
    "a log without a level",
    ({ log }) => log(wrong("hello"), undefined),
    'Write context.log(level, data, logger): it was called with arguments whose "level" is string "hello"; it must be one of debug',
  ],
  ["a log without data", ({ log }) => log("info", undefined), 'whose "data" is missing'],
])("a handler that makes %s fails, and the log says why", async (_, use, message) => {
  const errors: unknown[] = [];
  const registry = createRegistry({
    onError: (error, tool) => void errors.push(`${tool}: ${String(error)}`),
  });
  // Not awaited, as it often is.
  registry.register("t", {}, (_args, context) => void use(context));
  await using client = await connect({ server: createServer(registry, info) });
  expect(await client.callTool("t")).toMatchObject({ isError: true });
  expect(errors).toEqual([expect.stringContaining(`t: TypeError: `)]);
  expect(errors).toEqual([expect.stringContaining(message)]);
});

test("a prompt of another provider that cannot be listed is left out, and the others are listed", async () => {
  const registry = createRegistry();
  const listed = [{ name: "bad", arguments: z.object({}) }, { name: "good" }];
  const provider: Provider = {
    ...registry,
    list: (part, context) =>
      part === "prompts" ? new Listing<never>(wrong(listed)) : registry.list(part, context),
    offers: () => ({ serves: () => true }),
  };
  const errors: unknown[] = [];
  const server = createServer(provider, info, {
    onError: (error, method) => void errors.push([method, String(error)]),
  });
  await using client = await connect({ server });
  expect((await client.listPrompts()).map(({ name }) => name)).toEqual(["good"]);
  expect(errors).toEqual([
    ["prompts/list", expect.stringContaining("Left out of the prompts: bad") as string],
  ]);
});

describe("a form", () => {
  const requested = (fields: unknown, required?: readonly string[]): unknown =>
    elicit("Who?", wrong(fields), required).params?.["requestedSchema"];

  test.each<[what: string, fields: unknown]>([
    ["fields", { name: { type: "string" }, old: { type: "boolean" } }],
    ["a JSON Schema", { type: "object", properties: { name: { type: "string" }, old: { type: "boolean" } } }],
    ["a schema of zod", z.object({ name: z.string().optional(), old: z.boolean().optional() })],
    ["a schema of arktype", type({ "name?": "string", "old?": "boolean" })],
  ])("may be made from %s", (_, fields) => {
    const properties = { name: { type: "string" }, old: { type: "boolean" } };
    expect(requested(fields)).toEqual({ type: "object", properties });
    expect(requested(fields, ["name"])).toEqual({ type: "object", properties, required: ["name"] });
  });

  test("says which fields of a schema are required, and which values a choice has", () => {
    const fields = z.object({
      size: z.enum(["s", "l"]),
      extras: z.array(z.enum(["a", "b"])),
      note: z.string().default(""),
    });
    expect(requested(fields)).toEqual({
      type: "object",
      properties: {
        size: { type: "string", enum: ["s", "l"] },
        extras: { type: "array", items: { type: "string", enum: ["a", "b"] } },
        note: { type: "string", default: "" },
      },
      required: ["size", "extras"],
    });
  });

  test.each<[fields: unknown, required: unknown, message: string]>([
    [
      { name: z.string() },
      undefined,
      'the field "name" is a schema of a library: put z.object({ … }) around all fields',
    ],
    [{ name: "string" }, undefined, 'the field "name" must be an object such as { type: "string" }'],
    [{ name: { type: "object" } }, undefined, 'the field "name" has the type "object"; forms have strings'],
    [z.object({ name: z.object({}) }), undefined, 'the field "name" has the type "object"'],
    [{ names: { type: "array", items: { type: "string" } } }, undefined, "a choice of several is written"],
    [z.string(), undefined, "a form is an object of fields"],
    [v.object({}), undefined, "this valibot schema cannot say its own JSON Schema; write the fields"],
    [undefined, undefined, "a form is an object of fields"],
    [{ name: { type: "string" } }, ["nam"], '"nam" is required, but the fields are name'],
    [{ name: { type: "string" } }, true, "the names of required fields must be an array"],
  ])("made from %j, required %j, is refused", (fields, required, message) => {
    expect(() => elicit("Who?", wrong(fields), wrong(required))).toThrow(message);
  });
});

test.each<[ask: () => unknown, message: string]>([
  [
    () => elicit(wrong({ name: { type: "string" } }), {}),
    "elicit(message, fields): the message must be a string",
  ],
  [() => elicitUrl(wrong(undefined), "https://a.example"), "the message must be a string"],
  [() => sample(wrong("hi")), "Write sample({ messages:"],
  [
    () => sample(wrong({ messages: [{ role: "user", content: "hi" }], maxTokens: 5 })),
    "Write sample({ messages:",
  ],
  [() => sample(wrong({ messages: [] })), "maxTokens"],
  [() => inputRequired(wrong(elicit("?", {}))), "inputRequired: questions are an object of them by name"],
  [() => inputRequired(wrong("What?")), "inputRequired: questions are an object of them by name"],
  [() => inputRequired(wrong({ q: "What?" })), 'inputRequired: "q" is not a question'],
  [() => text(wrong(5)), "Write text(string)"],
  [() => image(new Uint8Array(1), wrong(undefined)), "Write image(bytes, mimeType)"],
  [() => audio(wrong(new ArrayBuffer(1)), "audio/wav"), "Write audio(bytes, mimeType)"],
  [() => resourceLink(wrong({ uri: "a:b" })), "Write resourceLink({ uri, name })"],
  [() => embedResource("a:b", wrong({})), "Write embedResource(uri, contents)"],
  [
    () => structured(1, wrong([{ type: "img" }])),
    "Write structured(value, blocks): blocks[0] is of the unknown type",
  ],
])("%s is refused", (ask, message) => {
  expect(ask).toThrow(message);
});

describe("made wrongly:", () => {
  test.each<[options: object, message: string]>([
    [{ prompts: [] }, "createRegistry: prompts is array of 0; write { prompts: createPromptRegistry() }"],
    [
      { resources: nothing },
      "createRegistry: resources is function; write { resources: createResourceRegistry() }",
    ],
    [{ completion: nothing }, "createRegistry: completion is function"],
    [{ tasks: true }, "createRegistry: tasks is boolean true; write { tasks: createMemoryTasks() }"],
    [{ skills: "./skills" }, "write { skills: await loadSkills(folder) }"],
    [
      { cacheHints: { ttl: 5 } },
      'createRegistry: cacheHints must be such as { ttlMs: 60000, cacheScope: "public" }',
    ],
    [{ onError: "x" }, "createRegistry: onError must be a function"],
  ])("a registry with %j", (options, message) => {
    expect(() => createRegistry(options as RegistryOptions)).toThrow(message);
  });

  const server = (given: unknown, more: unknown = {}, provider: unknown = createRegistry()): unknown =>
    createServer(provider as Registry, given as ServerInfo, more as ServerOptions);
  test.each<[make: () => unknown, message: string]>([
    [
      () => server(undefined),
      'createServer(provider, info): write { name: "weather", version: "1.0.0" } as info',
    ],
    [() => server({ name: "x" }), "as info"],
    [() => server({ ...info, instructions: 5 }), "createServer: instructions must be a text"],
    [() => server(info, {}, {}), "the provider must have list, call and offers; createRegistry() makes one"],
    [() => server(info, { serves: "modrn" }), "createServer: serves must be one of both, legacy, modern"],
    [() => server(info, { pageSize: 0 }), "createServer: pageSize must be a number above 0, but is 0"],
    [() => server(info, { maxRounds: "x" }), "createServer: maxRounds must be a number above 0"],
  ])("a server, %#", (make, message) => {
    expect(make).toThrow(message);
  });

  test.each<[middlewares: unknown, message: string]>([
    [undefined, "withMiddleware(provider, middlewares): write an array"],
    [[undefined], "middlewares[0] must be an object of hooks (filterTools, beforeCall, afterCall)"],
    [[nothing], "middlewares[0] must be an object of hooks"],
    [[{ beforeCall: 5 }], "middlewares[0]: beforeCall must be a function, but is number"],
    [[{ beforecall: nothing }], 'middlewares[0]: "beforecall" is not a hook; did you mean beforeCall?'],
  ])("middleware, %j", (middlewares, message) => {
    expect(() => withMiddleware(createRegistry(), wrong(middlewares))).toThrow(message);
  });

  test.each<[middleware: Middleware, message: string]>([
    [{ beforeCall: () => wrong("x") }, "beforeCall must return changes"],
    [{ afterCall: () => wrong({ content: [] }) }, "afterCall must return an end"],
  ])("a hook that returns something else, %#", async (middleware, message) => {
    const registry = createRegistry();
    registry.register("t", {}, nothing);
    const errors: unknown[] = [];
    const server = createServer(withMiddleware(registry, [middleware]), info, {
      onError: (error) => void errors.push(error),
    });
    await using client = await connect({ server });
    await expect(client.callTool("t")).rejects.toThrow("Internal error");
    expect(String(errors)).toContain(message);
  });
});
