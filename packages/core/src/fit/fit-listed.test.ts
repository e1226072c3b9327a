import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { RawJson } from "../json/raw.ts";
import { definitionOf } from "../mcp/definition.ts";
import { type Fit, fitPrompt, fitResource, fitTemplate, fitTool, type ToolTerms } from "./fit-listed.ts";

const raw = (value: unknown): RawJson => RawJson.parse(Buffer.from(JSON.stringify(value)));
const terms = (changes: Partial<ToolTerms> = {}): ToolTerms => ({
  isLegacy: true,
  isMirroring: false,
  budget: { leftMs: 60_000 },
  ...changes,
});

/** The JSON that is listed and the notes, or the reason why the thing is left out. */
function outcome(fit: Fit<object>): unknown {
  if (fit.kind === "unfit") return fit.reason;
  const listed: unknown = JSON.parse(definitionOf(fit.item).text);
  expect(listed).toEqual(fit.item);
  return [listed, ...fit.notes.map(({ path, text }) => `${path} ${text}`)];
}
const tool = async (value: unknown, changes: Partial<ToolTerms> = {}): Promise<unknown> =>
  outcome(await fitTool(raw(value), terms(changes)));

const objectSchema = { type: "object" };
const plain = { name: "a", inputSchema: objectSchema };

describe("a tool", () => {
  test("that every client takes stays as it is, byte for byte", async () => {
    const text =
      '{ "name":"a","inputSchema" : {"type":"object","properties":{"n":{"maximum":12345678901234567890}},"x":1.0},' +
      '"annotations":{"readOnlyHint":true,"vendor":1},"execution":{"taskSupport":"optional"},"icons":[{"src":"data:,x","sizes":["any"]}],' +
      '"outputSchema":{"type":"object"},"_meta":{},"future":[1.0] }';
    const fit = await fitTool(RawJson.parse(Buffer.from(text)), terms());
    expect(fit).toMatchObject({ kind: "fit", notes: [] });
    expect(fit.kind === "fit" && definitionOf(fit.item).text).toBe(text.trim());
  });

  test("that is mended keeps every other byte", async () => {
    const text =
      '{ "name":"a", "inputSchema" : { "x":1.0, "properties":{"n":{"maximum":12345678901234567890}} },"y":1e400}';
    const fit = await fitTool(RawJson.parse(Buffer.from(text)), terms());
    expect(fit.kind === "fit" && definitionOf(fit.item).text).toBe(
      text.replace('{ "x"', '{"type":"object", "x"'),
    );
  });

  test.each<[string, unknown, string]>([
    ["not an object", 5, "it is number 5, not an object"],
    ["an array", [plain], "it is array of 1, not an object"],
    ["null", null, "it is null, not an object"],
    ["without a name", { inputSchema: objectSchema }, "name is missing"],
    ["with a name that is not a string", { ...plain, name: 7 }, "name is number 7, not a string"],
    [
      "whose input is text",
      { ...plain, inputSchema: "object" },
      'inputSchema is string "object", not a JSON Schema of an object',
    ],
    [
      "that accepts nothing",
      { ...plain, inputSchema: false },
      "inputSchema is boolean false, not a JSON Schema of an object",
    ],
    [
      "whose input is a string",
      { ...plain, inputSchema: { type: "string" } },
      'inputSchema has the type string "string", but arguments are always an object',
    ],
    [
      "whose input is an array or null",
      { ...plain, inputSchema: { type: ["array", "null"] } },
      "inputSchema has the type array of 2, but arguments are always an object",
    ],
  ])("%s is left out", async (_, value, reason) => {
    expect(await tool(value)).toBe(reason);
  });

  test.each<[string, unknown, unknown, string]>([
    ["missing", undefined, objectSchema, 'inputSchema set to {"type":"object"}: it is missing'],
    ["null", null, objectSchema, 'inputSchema set to {"type":"object"}: it is null'],
    ["true", true, objectSchema, 'inputSchema set to {"type":"object"}: it is boolean true'],
    ["an empty array", [], objectSchema, 'inputSchema set to {"type":"object"}: it is array of 0'],
    [
      "without a type",
      { $schema: "x" },
      { $schema: "x", type: "object" },
      'inputSchema.type set to "object": it is missing',
    ],
    [
      "of a type in capitals",
      { type: "Object" },
      objectSchema,
      'inputSchema.type set to "object": it is string "Object"',
    ],
    [
      "of several types",
      { type: ["object", "null"] },
      objectSchema,
      'inputSchema.type set to "object": it is array of 2',
    ],
    [
      "with properties null",
      { ...objectSchema, properties: null },
      objectSchema,
      "inputSchema.properties removed: null is not an object",
    ],
    [
      "with properties []",
      { ...objectSchema, properties: [] },
      { ...objectSchema, properties: {} },
      "inputSchema.properties set to {}: it is an empty array",
    ],
    [
      "with a property true",
      { ...objectSchema, properties: { a: true } },
      { ...objectSchema, properties: { a: {} } },
      "inputSchema.properties.a set to {}: it is boolean true",
    ],
    [
      "with a property false",
      { ...objectSchema, properties: { a: false } },
      { ...objectSchema, properties: { a: { not: {} } } },
      'inputSchema.properties.a set to {"not":{}}: it is boolean false',
    ],
    [
      "with a property that is text",
      { ...objectSchema, properties: { a: "string", b: {} } },
      { ...objectSchema, properties: { a: {}, b: {} } },
      'inputSchema.properties.a set to {}: it is string "string"',
    ],
    [
      "that requires true",
      { ...objectSchema, required: true },
      objectSchema,
      "inputSchema.required removed: boolean true is not an array",
    ],
    [
      "that requires numbers",
      { ...objectSchema, required: ["a", 1] },
      { ...objectSchema, required: ["a"] },
      "inputSchema.required loses the entries that are not strings",
    ],
    [
      "of a dialect that is not a string",
      { ...objectSchema, $schema: 7 },
      objectSchema,
      "inputSchema.$schema removed: number 7 is not a string",
    ],
  ])("with an input schema that is %s is mended", async (_, inputSchema, mended, note) => {
    expect(await tool({ name: "a", inputSchema })).toEqual([{ name: "a", inputSchema: mended }, note]);
  });

  test("with numbers that no double holds gets the largest that one does", async () => {
    const text =
      '{"name":"a","inputSchema":{"type":"object","properties":{"n":{"maximum":1e400,"enum":[-1e999,1]}}}}';
    const fit = await fitTool(RawJson.parse(Buffer.from(text)), terms());
    expect(outcome(fit)).toEqual([
      {
        name: "a",
        inputSchema: {
          type: "object",
          properties: { n: { maximum: Number.MAX_VALUE, enum: [-Number.MAX_VALUE, 1] } },
        },
      },
      "inputSchema has numbers that no double holds: the largest is used",
    ]);
  });

  test.each<[string, object, object, readonly string[]]>([
    [
      "texts",
      { title: 1, description: null },
      {},
      ["title removed: number 1 is not a string", "description removed: null is not a string"],
    ],
    ["meta", { _meta: [] }, {}, ["_meta removed: array of 0 is not an object"]],
    ["annotations", { annotations: "safe" }, {}, ['annotations removed: string "safe" is not an object']],
    [
      "hints",
      { annotations: { readOnlyHint: "yes", title: "T", x: 1 } },
      { annotations: { title: "T", x: 1 } },
      ['annotations.readOnlyHint removed: string "yes" is not a boolean'],
    ],
    [
      "tasks",
      { execution: { taskSupport: "maybe" } },
      { execution: {} },
      ['execution.taskSupport removed: string "maybe" is not one of forbidden, optional, required'],
    ],
    ["icons", { icons: "x" }, {}, ['icons removed: string "x" is not an array']],
    [
      "some icons",
      { icons: [1, { src: "https://e.example/a", sizes: "48x48" }, { src: "a.png" }, {}] },
      { icons: [{ src: "https://e.example/a" }] },
      [
        "icons[0] removed: number 1 is not an object",
        'icons[1].sizes removed: string "48x48" is not an array',
        'icons[2].src removed: string "a.png" is not an absolute URI',
        "icons[3] removed: its src is missing",
      ],
    ],
  ])("with %s that clients refuse loses those", async (_, given, kept, notes) => {
    expect(await tool({ ...plain, ...given })).toEqual([{ ...plain, ...kept }, ...notes]);
  });
});

describe("an output schema", () => {
  test.each<[string, unknown, string]>([
    ["null", null, "null is not an object"],
    ["true", true, "boolean true is not an object"],
    ["of an array", { type: "array" }, 'its type is string "array", not "object"'],
    [
      "with a reference that leads nowhere",
      { ...objectSchema, properties: { a: { $ref: "#/$defs/no" } } },
      "clients cannot compile it: can't resolve reference #/$defs/no from id #",
    ],
    [
      "with a pattern that is invalid",
      { ...objectSchema, properties: { a: { pattern: "[" } } },
      "clients cannot compile it: Invalid regular expression: /[/u: Unterminated character class",
    ],
    [
      "with a type that does not exist",
      { ...objectSchema, properties: { a: { type: "text" } } },
      "clients cannot compile it: type must be JSONType or JSONType[]: text",
    ],
    [
      "in an unknown dialect",
      { ...objectSchema, $schema: "https://e.example/schema" },
      'clients cannot compile it: The schema\'s "$schema" is string',
    ],
  ])("%s is removed: clients would give up the list, or the call", async (_, outputSchema, reason) => {
    expect(await tool({ ...plain, outputSchema })).toEqual([
      plain,
      expect.stringContaining(`outputSchema removed: ${reason}`),
    ]);
  });

  test("of a legacy server is an object even if it does not say so", async () => {
    const outputSchema = { properties: { a: true }, required: ["a"] };
    expect(await tool({ ...plain, outputSchema })).toEqual([
      { ...plain, outputSchema: { type: "object", properties: { a: {} }, required: ["a"] } },
      'outputSchema.type set to "object": it is missing',
      "outputSchema.properties.a set to {}: it is boolean true",
    ]);
  });

  test.each([{ type: "array" }, {}, { type: ["object", "null"] }, { $ref: "#/$defs/a", $defs: { a: {} } }])(
    "%j of a modern server may be anything",
    async (outputSchema) => {
      expect(await tool({ ...plain, outputSchema }, { isLegacy: false })).toEqual([
        { ...plain, outputSchema },
      ]);
    },
  );

  test.each<[unknown, unknown, string]>([
    [{ ...objectSchema, $id: "out" }, objectSchema, "$id removed: another server's schema may have the same"],
    [
      { ...objectSchema, $id: "out", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: {} } },
      { ...objectSchema, properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: {} } },
      "$id removed: another server's schema may have the same",
    ],
    [
      { ...objectSchema, "x-own": { $id: "out" } },
      { ...objectSchema, "x-own": {} },
      "$id removed: another server's schema may have the same",
    ],
    [
      { ...objectSchema, properties: { $id: { $id: "inner", default: { $id: "data" } } } },
      { ...objectSchema, properties: { $id: { default: { $id: "data" } } } },
      "$id removed: another server's schema may have the same",
    ],
  ])("%j loses an $id that another schema could have", async (outputSchema, kept, note) => {
    expect(await tool({ ...plain, outputSchema })).toEqual([
      { ...plain, outputSchema: kept },
      `outputSchema.${note}`,
    ]);
  });

  test("that refers to its own $id is removed", async () => {
    const outputSchema = {
      ...objectSchema,
      $id: "http://e.example/a",
      properties: { a: { $ref: "a#/$defs/x" } },
    };
    expect(await tool({ ...plain, outputSchema })).toEqual([
      plain,
      "outputSchema removed: it refers to an $id, and another server's schema may have the same",
    ]);
  });

  test("is removed unchecked when those before it took all the time", async () => {
    const late = { ...plain, outputSchema: { ...objectSchema, $comment: "late" } };
    expect(await tool(late, { budget: { leftMs: 0 } })).toEqual([
      plain,
      "outputSchema removed: clients cannot compile it: the output schemas of this server take too long to compile",
    ]);
  });
});

describe("a resource", () => {
  const resource = { uri: "file:///a b", name: "A" };
  const read = (value: unknown): unknown => outcome(fitResource(raw(value)));

  test("that every client takes stays as it is", () => {
    const full = {
      ...resource,
      mimeType: "text/plain",
      size: 3,
      annotations: { audience: ["user"], priority: 0.5, lastModified: "2024-02-29T10:00:00+01:00" },
    };
    expect(read(full)).toEqual([full]);
  });

  test.each<[unknown, string]>([
    ["x", 'it is string "x", not an object'],
    [{ name: "A" }, "uri is missing"],
    [{ ...resource, uri: "docs/readme" }, "uri is not an absolute URI"],
    [{ ...resource, uri: "" }, "uri is not an absolute URI"],
  ])("%j is left out", (value, reason) => {
    expect(read(value)).toBe(reason);
  });

  test.each<[object, object, string]>([
    [{ name: undefined }, { name: "file:///a b" }, "name set to its uri: it is missing"],
    [
      { name: 5, title: "T" },
      { name: "T", title: "T" },
      "name set to its title: it is number 5, not a string",
    ],
    [{ mimeType: 1 }, {}, "mimeType removed: number 1 is not a string"],
    [{ size: 1.5 }, {}, "size removed: number 1.5 is not a size in bytes"],
    [{ size: "3" }, {}, 'size removed: string "3" is not a size in bytes'],
    [
      { annotations: { priority: 2 } },
      { annotations: {} },
      "annotations.priority removed: number 2 is not a number from 0 to 1",
    ],
    [
      { annotations: { audience: ["user", "all"] } },
      { annotations: { audience: ["user"] } },
      'annotations.audience[1] removed: string "all" is not one of user, assistant',
    ],
    [
      { annotations: { lastModified: "2024-02-30T10:00:00Z" } },
      { annotations: {} },
      'annotations.lastModified removed: string "2024-02-30T10:00:00Z" is not an RFC 3339 time with an offset',
    ],
    [
      { annotations: { lastModified: "yesterday" } },
      { annotations: {} },
      'annotations.lastModified removed: string "yesterday" is not an RFC 3339 time with an offset',
    ],
  ])("with %j is mended", (given, kept, note) => {
    expect(read({ ...resource, ...given })).toEqual([{ ...resource, ...kept }, note]);
  });
});

describe("a resource template", () => {
  const read = (value: unknown): unknown => outcome(fitTemplate(raw(value)));

  test.each(["x://{a}", "x://{+path*}", "x://{user-id}{?q,r:3}"])("%s stays as it is", (uriTemplate) => {
    expect(read({ uriTemplate, name: "T" })).toEqual([{ uriTemplate, name: "T" }]);
  });

  test.each(["x://{a", "x://a}", "x://{}", "x://{a{b}}", ""])("%j is left out", (uriTemplate) => {
    expect(read({ uriTemplate, name: "T" })).toBe(
      "uriTemplate is not a URI template: its braces do not pair up",
    );
  });

  test("without a name has its template as one", () => {
    expect(read({ uriTemplate: "x://{a}" })).toEqual([
      { uriTemplate: "x://{a}", name: "x://{a}" },
      "name set to its uriTemplate: it is missing",
    ]);
  });
});

test("arguments of a prompt are mended one by one", () => {
  const given = {
    name: "p",
    arguments: [
      { name: "a", required: "yes", description: null },
      { title: "no name" },
      5,
      { name: "b", required: true },
    ],
  };
  expect(outcome(fitPrompt(raw(given)))).toEqual([
    { name: "p", arguments: [{ name: "a" }, { name: "b", required: true }] },
    "arguments[0].description removed: null is not a string",
    'arguments[0].required removed: string "yes" is not a boolean',
    "arguments[1] removed: its name is missing",
    "arguments[2] removed: number 5 is not an object",
  ]);
  expect(outcome(fitPrompt(raw({ name: "p", arguments: { a: {} } })))).toEqual([
    { name: "p" },
    "arguments removed: object is not an array",
  ]);
});
