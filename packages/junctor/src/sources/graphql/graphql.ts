import { readFile, stat } from "node:fs/promises";
import { createApiFetch } from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import {
  failure,
  createRegistry,
  type Registry,
  structured,
  text,
  type ToolContext,
  type ToolResult,
} from "@junctor/server";
import {
  buildClientSchema,
  buildSchema,
  getIntrospectionQuery,
  getOperationAST,
  type GraphQLField,
  type GraphQLSchema,
  type IntrospectionQuery,
  parse,
  printType,
  validate,
} from "graphql";
import type { GraphQlConfig } from "../../config/index.ts";
import { nameOperations } from "../openapi/operations.ts";
import { shorten } from "../openapi/schemas.ts";
import { toInputSchema } from "./schemas.ts";
import { selectFields } from "./selection.ts";

interface GraphQlOptions extends GraphQlConfig {
  readonly headers: { readonly [name: string]: string };
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
  readonly onError: (error: unknown, tool: string) => void;
}

const maxBytes = 8 * 1024 * 1024;
const maxTools = 5000;
const maxDescription = 1000;
/** The most characters of an answer about the schema. */
const maxFound = 6000;
/** The most tokens of a document that a caller wrote. */
const maxTokens = 5000;

/** Sends a document. Throws a `ToolError` when there is no answer that is GraphQL. */
type Ask = (document: string, variables: object, signal: AbortSignal) => Promise<GraphQlAnswer>;

interface GraphQlAnswer {
  readonly data?: unknown;
  readonly errors?: readonly unknown[];
}

/** Makes tools of a GraphQL API: one for each query and mutation, or one for any document. Rejects when its schema cannot be read. */
export async function fromGraphQl(options: GraphQlOptions): Promise<Registry> {
  const ask = await createAsk(options);
  const schema = await readSchema(options, ask);
  const registry = createRegistry({ onError: options.onError });
  if (options.tools === "query") registerQuery(registry, schema, ask, options);
  else registerFields(registry, schema, ask, options);
  return registry;
}

async function createAsk({ server, headers, hosts, timeoutMs, clock }: GraphQlOptions): Promise<Ask> {
  const url = new URL(server);
  const send = await createApiFetch({ named: [url.host, ...hosts], maxBytes, timeoutMs, clock });
  return async (query, variables, signal) => {
    const body = JSON.stringify({ query, variables });
    const own = {
      "content-type": "application/json",
      accept: "application/graphql-response+json, application/json",
    };
    const answer = await send(url, { method: "POST", headers: own, body, signal }, headers).catch(
      (error: unknown) => {
        signal.throwIfAborted();
        throw new ToolError(
          `The API gave no answer: ${error instanceof Error ? error.message : String(error)}`,
        );
      },
    );
    const content = new TextDecoder().decode(answer.body);
    const parsed = parseAnswer(content);
    if (parsed !== undefined) return parsed;
    const wait = answer.headers.get("retry-after");
    const notes = wait === null ? "" : ` It may be tried again after ${wait} seconds.`;
    throw new ToolError(
      `The API answered with status ${answer.status} and no GraphQL.${notes}\n${content.slice(0, 2000)}`,
    );
  };
}

function parseAnswer(content: string): GraphQlAnswer | undefined {
  try {
    const value: unknown = JSON.parse(content);
    if (typeof value !== "object" || value === null || !("data" in value || "errors" in value))
      return undefined;
    const { data, errors } = value as { readonly data?: unknown; readonly errors?: unknown };
    return { data, ...(Array.isArray(errors) ? { errors: errors as readonly unknown[] } : {}) };
  } catch {
    return undefined;
  }
}

/** From a file with the definitions or the answer of an introspection, or from the API itself. */
async function readSchema({ schema: file, timeoutMs }: GraphQlOptions, ask: Ask): Promise<GraphQLSchema> {
  if (file !== undefined) {
    const { size } = await stat(file);
    if (size > maxBytes) throw new Error(`${file} has ${size} bytes: at most ${maxBytes} are read`);
    const content = await readFile(file, "utf8");
    // The schemas of large APIs have mistakes that do no harm.
    if (!content.trimStart().startsWith("{"))
      return buildSchema(content, { assumeValid: true, assumeValidSDL: true });
    const { data, ...bare } = JSON.parse(content) as { readonly data?: unknown };
    return buildClientSchema((data ?? bare) as IntrospectionQuery, { assumeValid: true });
  }
  const advice = 'write "schema": "./schema.graphql" if it tells its schema to nobody';
  try {
    const { data, errors } = await ask(getIntrospectionQuery(), {}, AbortSignal.timeout(timeoutMs));
    if (data === undefined || data === null) throw new Error(describeErrors(errors));
    return buildClientSchema(data as IntrospectionQuery, { assumeValid: true });
  } catch (error) {
    throw new Error(`its schema cannot be read: ${(error as Error).message}; ${advice}`, { cause: error });
  }
}

type RootField = GraphQLField<unknown, unknown>;

/** A document for one field of a schema, with all its arguments as variables. */
export function writeDocument(
  schema: GraphQLSchema,
  kind: "query" | "mutation",
  field: RootField,
  depth: number,
): string {
  const variables = field.args.map(({ name, type }) => `$${name}: ${String(type)}`);
  const args = field.args.map(({ name }) => `${name}: $${name}`);
  const inBrackets = (all: readonly string[]): string => (all.length === 0 ? "" : `(${all.join(", ")})`);
  return `${kind} ${field.name}${inBrackets(variables)} { ${field.name}${inBrackets(args)}${selectFields(schema, field.type, depth)} }`;
}

function registerFields(registry: Registry, schema: GraphQLSchema, ask: Ask, options: GraphQlOptions): void {
  const roots = [
    ["query", "get", schema.getQueryType()],
    ["mutation", "post", options.mutations ? schema.getMutationType() : undefined],
  ] as const;
  const operations = roots.flatMap(([kind, method, type]) =>
    Object.values(type?.getFields() ?? {})
      .filter(({ deprecationReason }) => typeof deprecationReason !== "string")
      .map((field) => ({ id: field.name, method, path: `${kind} ${field.name}`, kind, field })),
  );
  if (operations.length > maxTools)
    throw new Error(
      `its schema has ${operations.length} queries and mutations: write "tools": "query" for one tool`,
    );
  for (const [name, { kind, field }] of nameOperations(operations)) {
    const document = writeDocument(schema, kind, field, options.depth);
    const description = shorten(
      typeof field.description === "string" ? field.description : "",
      maxDescription,
    );
    try {
      registry.register(
        name,
        {
          description: description === "" ? `The ${kind} ${field.name}` : description,
          input: toInputSchema(field.args),
          annotations: { readOnlyHint: kind === "query", openWorldHint: true },
        },
        async (args: object, { signal }: ToolContext) => toResult(await ask(document, args, signal)),
      );
    } catch (error) {
      options.onWarning(`Left out ${kind} ${field.name}: ${(error as Error).message}`);
    }
  }
}

function registerQuery(
  registry: Registry,
  schema: GraphQLSchema,
  ask: Ask,
  { mutations }: GraphQlOptions,
): void {
  const document = { type: "string", description: "A GraphQL document with one operation" } as const;
  const variables = { type: "object", description: "Its variables" } as const;
  registry.register(
    "query",
    {
      description: `Asks the GraphQL API. search_schema tells its types and fields.${mutations ? "" : " It can be read only."}`,
      input: { type: "object", properties: { query: document, variables }, required: ["query"] },
      annotations: { readOnlyHint: !mutations, openWorldHint: true },
    },
    async (
      { query, variables: given = {} }: { readonly query?: string; readonly variables?: object },
      { signal }: ToolContext,
    ) => {
      assertDocument(schema, query ?? "", mutations);
      return toResult(await ask(query ?? "", given, signal));
    },
  );
  registry.register(
    "search_schema",
    {
      description:
        "Finds types of the GraphQL API by words in their names, their fields and descriptions. Query and Mutation have what can be asked.",
      input: { type: "object", properties: { words: { type: "string" } }, required: ["words"] },
      annotations: { readOnlyHint: true },
    },
    ({ words = "" }: { readonly words?: string }) => searchSchema(schema, words),
  );
}

/** A document that does not fit the schema is not sent. */
function assertDocument(schema: GraphQLSchema, query: string, mutations: boolean): void {
  const parsed = (() => {
    try {
      return parse(query, { maxTokens });
    } catch (error) {
      throw new ToolError((error as Error).message);
    }
  })();
  const errors = validate(schema, parsed, undefined, { maxErrors: 5 });
  if (errors.length > 0) throw new ToolError(errors.map(({ message }) => message).join("\n"));
  const operation: string | undefined = getOperationAST(parsed)?.operation;
  if (operation === undefined) throw new ToolError("Send one operation in a document");
  if (operation === "subscription") throw new ToolError("Subscriptions cannot be asked here");
  if (operation === "mutation" && !mutations) throw new ToolError("This API can be read only");
}

function searchSchema(schema: GraphQLSchema, given: string): string {
  const words = given.toLowerCase().split(/\W+/).filter(Boolean);
  const ranked = Object.values(schema.getTypeMap())
    .filter(({ name }) => !name.startsWith("__"))
    .map((type) => {
      const written = printType(type);
      const name = type.name.toLowerCase();
      const lower = written.toLowerCase();
      const score = words.reduce(
        (sum, word) =>
          sum + (name === word ? 20 : name.includes(word) ? 5 : 0) + (lower.includes(word) ? 1 : 0),
        0,
      );
      return { score, written, words };
    })
    .filter(({ score }) => score > 0)
    .toSorted((one, other) => other.score - one.score);
  let found = "";
  for (const { written } of ranked) {
    // Of a long type, only the fields that have one of the words.
    const lines = written.length < 2000 ? written : pickLines(written, words);
    if (found.length + lines.length > maxFound) break;
    found += `${lines}\n\n`;
  }
  return found.trim() || "Nothing has these words. Try others, or Query for all that can be asked.";
}

function pickLines(written: string, words: readonly string[]): string {
  const lines = written
    .split("\n")
    .filter(
      (line) =>
        /^(?:type|input|interface|enum|union|\})/.test(line) ||
        words.some((word) => line.toLowerCase().includes(word)),
    );
  const names = written.split("\n").flatMap((line) => /^ {2}(\w+)[(:]/.exec(line)?.[1] ?? []);
  return `${lines.slice(0, 30).join("\n")}\n# all fields: ${names.join(" ").slice(0, 1500)}`;
}

function toResult({ data, errors }: GraphQlAnswer): ToolResult {
  const wrong = errors === undefined || errors.length === 0 ? [] : [text(describeErrors(errors))];
  if (data === undefined || data === null) return failure(describeErrors(errors));
  return structured(data, [text(JSON.stringify(data)), ...wrong]);
}

function describeErrors(errors: readonly unknown[] = []): string {
  const texts = errors.slice(0, 10).map((error) => {
    const { message, path } = (error ?? {}) as { readonly message?: unknown; readonly path?: unknown };
    const where = Array.isArray(path) ? ` (at ${path.join(".")})` : "";
    return typeof message === "string"
      ? `${message.slice(0, 1000)}${where}`
      : JSON.stringify(error).slice(0, 1000);
  });
  return texts.length === 0 ? "The API answered without data" : texts.join("\n");
}
