// Whatever a server lists, what is listed of it is accepted by the official clients and the published schemas. The schemas'
// formats are notes to readers, as JSON Schema has it: no client refuses a list because of one.
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import * as core from "@modelcontextprotocol/core";
import * as v1 from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import { Ajv, type ValidateFunction } from "ajv";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { isPlainSchema } from "../../packages/core/src/fit/compile-fault.ts";
import {
  type Fit,
  fitPrompt,
  fitResource,
  fitTemplate,
  fitTool,
} from "../../packages/core/src/fit/fit-listed.ts";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { definitionOf } from "../../packages/core/src/mcp/definition.ts";
import { projectListed, projectPrompt, projectTool } from "../../packages/core/src/mcp/projection.ts";
import {
  isLegacyRevision,
  legacyRevisions,
  modernRevisions,
  type Revision,
} from "../../packages/core/src/mcp/revision.ts";
import type { Tool } from "../../packages/core/src/mcp/types.ts";
import { jsonText } from "../support/arbitrary-json.ts";
import { runs } from "../support/runs.ts";

interface Parser {
  safeParse(value: unknown): { readonly error?: unknown };
}

interface Kind {
  readonly definition: "Tool" | "Resource" | "ResourceTemplate" | "Prompt";
  readonly fit: (raw: RawJson) => Fit<object> | Promise<Fit<object>>;
  readonly project: (item: never, revision: Revision) => object;
  /** It knows no modern revision. */
  readonly v1: Parser;
  readonly v2: Parser;
  readonly members: { readonly [member: string]: fc.Arbitrary<string> };
}

const revisions: readonly Revision[] = [...legacyRevisions, ...modernRevisions];
const json = (value: unknown): string => JSON.stringify(value);
const anything = jsonText();
const objectText = (members: { readonly [member: string]: fc.Arbitrary<string> }): fc.Arbitrary<string> =>
  fc.record(members, { requiredKeys: [] }).map(
    (given) =>
      `{${Object.entries(given)
        .map(([key, text]) => `${json(key)}:${text}`)
        .join(",")}}`,
  );
const arrayText = (entry: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.array(entry, { maxLength: 3 }).map((entries) => `[${entries.join(",")}]`);
/** Mostly what it should be, and sometimes anything. */
const mostly = (...sound: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.oneof({ weight: 3, arbitrary: fc.oneof(...sound) }, { weight: 1, arbitrary: anything });
const oneOf = (...values: readonly unknown[]): fc.Arbitrary<string> =>
  mostly(fc.constantFrom(...values.map(json)));
const text = mostly(fc.string().map(json));
const flag = oneOf(true, false);

/** Schemas of a few keywords each. Where `value` is anything, so may be the values of keywords. */
function schemaText(value: (...values: readonly unknown[]) => fc.Arbitrary<string>): fc.Arbitrary<string> {
  const { schema } = fc.letrec<{ schema: string; part: string }>((tie) => ({
    part: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      value({}, { type: "string" }, true, false),
      tie("schema"),
    ),
    schema: fc
      .uniqueArray(
        fc.oneof(
          member("type", value("object", "array", "string", ["object", "null"])),
          member(
            "$schema",
            value("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"),
          ),
          member("properties", objectText({ a: tie("part"), b: tie("part") })),
          member("$defs", objectText({ a: tie("part"), c: tie("part") })),
          member("required", value(["a"], ["a", "b"])),
          fc.oneof(
            ...["additionalProperties", "items", "propertyNames", "not"].map((keyword) =>
              member(keyword, tie("part")),
            ),
          ),
          fc.oneof(
            ...["anyOf", "oneOf", "allOf", "prefixItems"].map((keyword) =>
              member(keyword, arrayText(tie("part"))),
            ),
          ),
          member("$ref", value("#/$defs/a", "#/$defs/c")),
          member("enum", value([1, "a"])),
          member("pattern", value("^a+$")),
          member("format", value("uri")),
          fc.oneof(
            ...["minimum", "maxLength", "minItems", "default"].map((keyword) => member(keyword, value(3))),
          ),
        ),
        { maxLength: 5, selector: ([keyword]) => keyword },
      )
      .map((members) => `{${members.map(([keyword, of]) => `${json(keyword)}:${of}`).join(",")}}`),
  }));
  return schema;
}

function member(keyword: string, value: fc.Arbitrary<string>): fc.Arbitrary<readonly [string, string]> {
  return value.map((of) => [keyword, of] as const);
}

const soundSchema = schemaText((...values) => fc.constantFrom(...values.map(json)));
const oddities = [
  "objekt",
  "#/$defs/no",
  "#",
  "[",
  "\\-",
  1.5,
  -1,
  null,
  [],
  ["a", "a"],
  { $id: "x" },
  { nullable: true },
  { id: "x" },
];
const oddSchema = schemaText((...values) =>
  fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...values.map(json)) },
    fc.constantFrom(...oddities.map(json)),
    anything,
  ),
);
const schema = fc.oneof(soundSchema, oddSchema);

const icons = mostly(
  arrayText(
    mostly(
      objectText({
        src: oneOf("https://e.example/a.png", "a.png"),
        mimeType: text,
        sizes: mostly(arrayText(text)),
        theme: oneOf("light", "dark"),
      }),
    ),
  ),
);
const shared = {
  name: text,
  title: text,
  description: text,
  icons,
  _meta: mostly(objectText({ a: anything })),
  future: anything,
};
const annotations = mostly(
  objectText({
    audience: mostly(arrayText(oneOf("user", "assistant"))),
    priority: oneOf(0, 0.5, 1, 2),
    lastModified: oneOf("2024-02-29T10:00:00Z", "2023-02-29T10:00:00.5+01:00", "2024-01-01"),
  }),
);

const kinds: readonly Kind[] = [
  {
    definition: "Tool",
    fit: (raw) =>
      fitTool(raw, { isLegacy: raw.text.length % 2 === 0, isMirroring: false, budget: { leftMs: 60_000 } }),
    project: projectTool,
    v1: v1.ToolSchema,
    v2: core.ToolSchema,
    members: {
      ...shared,
      inputSchema: mostly(schema),
      outputSchema: mostly(schema),
      annotations: mostly(
        objectText({ title: text, readOnlyHint: flag, destructiveHint: flag, x: anything }),
      ),
      execution: mostly(objectText({ taskSupport: oneOf("optional", "never") })),
    },
  },
  {
    definition: "Resource",
    fit: fitResource,
    project: projectListed,
    v1: v1.ResourceSchema,
    v2: core.ResourceSchema,
    members: {
      ...shared,
      uri: oneOf("x:1", "file:///a b", "docs"),
      mimeType: text,
      size: oneOf(1, 1.5, -1),
      annotations,
    },
  },
  {
    definition: "ResourceTemplate",
    fit: fitTemplate,
    project: projectListed,
    v1: v1.ResourceTemplateSchema,
    v2: core.ResourceTemplateSchema,
    members: { ...shared, uriTemplate: oneOf("x:{a}", "x:{a", "x:{a-b*}"), mimeType: text, annotations },
  },
  {
    definition: "Prompt",
    fit: fitPrompt,
    project: projectPrompt,
    v1: v1.PromptSchema,
    v2: core.PromptSchema,
    members: {
      ...shared,
      arguments: mostly(
        arrayText(mostly(objectText({ name: text, title: text, description: text, required: flag }))),
      ),
    },
  },
];

const validators = new Map<Revision, (definition: string) => ValidateFunction>(
  revisions.map((revision) => {
    const url = new URL(`../fixtures/schemas/${revision}.json`, import.meta.url);
    const document = JSON.parse(readFileSync(url, "utf8")) as object;
    const section = "$defs" in document ? "$defs" : "definitions";
    const options = { strict: false, validateFormats: false };
    const ajv = section === "$defs" ? new Ajv2020(options) : new Ajv(options);
    ajv.addSchema(document, revision);
    return [revision, (definition) => ajv.getSchema(`${revision}#/${section}/${definition}`)!];
  }),
);

test.each(kinds)(
  "any $definition that is listed is accepted everywhere",
  async ({ definition, fit, project, members, ...sdk }) => {
    let listedCount = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof({ weight: 9, arbitrary: objectText(members) }, { weight: 1, arbitrary: anything }),
        async (given) => {
          const fitted = await fit(RawJson.parse(Buffer.from(given)));
          if (fitted.kind === "unfit") return;
          listedCount++;
          if (fitted.notes.length === 0) expect(definitionOf(fitted.item).text).toBe(given.trim());
          for (const revision of revisions) {
            const listed: unknown = JSON.parse(definitionOf(project(fitted.item as never, revision)).text);
            const validate = validators.get(revision)!(definition);
            expect(validate(listed) ? undefined : [revision, listed, validate.errors]).toBeUndefined();
            expect(sdk.v2.safeParse(listed).error).toBeUndefined();
            if (!isLegacyRevision(revision)) continue;
            expect(sdk.v1.safeParse(listed).error).toBeUndefined();
            // The v1 client compiles every output schema it lists, and gives the list up if it cannot.
            const { outputSchema } = listed as Tool;
            if (outputSchema !== undefined) new AjvJsonSchemaValidator().getValidator(outputSchema);
          }
        },
      ),
      { numRuns: 200 },
    );
    expect(listedCount).toBeGreaterThan(20);
  },
);

test("a plain schema can be compiled, in every dialect", () => {
  let plainCount = 0;
  fc.assert(
    fc.property(schema, (given) => {
      const value = JSON.parse(given) as object;
      if (!isPlainSchema(value)) return;
      plainCount++;
      for (const AjvClass of [Ajv, Ajv2020]) {
        const ajv = new AjvClass({ strict: false, validateSchema: false, allErrors: true, logger: false });
        addFormats.default(ajv);
        ajv.compile(value);
      }
    }),
    { numRuns: runs(500) },
  );
  expect(plainCount).toBeGreaterThan(20);
});
