import { readFileSync } from "node:fs";
import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Revision } from "../../packages/core/src/mcp/revision.ts";

/** Who sent a frame. */
export type Sender = "client" | "server";

/** One parsed JSON-RPC message. */
export interface Frame {
  readonly jsonrpc?: unknown;
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly error?: unknown;
}

/** What a result answers. Requests that the schema has no result for are not part of the protocol. */
const results: { readonly [method: string]: string } = {
  initialize: "InitializeResult",
  ping: "EmptyResult",
  "server/discover": "DiscoverResult",
  "subscriptions/listen": "SubscriptionsListenResult",
  "tools/list": "ListToolsResult",
  "tools/call": "CallToolResult",
  "resources/list": "ListResourcesResult",
  "resources/templates/list": "ListResourceTemplatesResult",
  "resources/read": "ReadResourceResult",
  "resources/subscribe": "EmptyResult",
  "resources/unsubscribe": "EmptyResult",
  "prompts/list": "ListPromptsResult",
  "prompts/get": "GetPromptResult",
  "completion/complete": "CompleteResult",
  "logging/setLevel": "EmptyResult",
  "elicitation/create": "ElicitResult",
  "sampling/createMessage": "CreateMessageResult",
  "roots/list": "ListRootsResult",
};

/** Errors whose shape a revision lays down, by their code. */
const errors: { readonly [code: number]: string } = {
  [-32020]: "HeaderMismatchError",
  [-32021]: "MissingRequiredClientCapabilityError",
  [-32022]: "UnsupportedProtocolVersionError",
};

/**
 * Holds a frame to the published schema of its revision: the envelope, and the request, notification, result or error
 * that it carries. Stricter than the schema where the schema is open: a member that the revision does not name is refused
 * too, because what we send must not depend on the reader's patience. `request` is what a response answers.
 *
 * @throws an Error that names the definition, the path and the frame.
 */
export function assertValidFrame(
  sender: Sender,
  revision: Revision,
  request: Frame | undefined,
  frame: unknown,
): void {
  const schema = schemaOf(revision);
  const { id, method, result, error } = frame as Frame;
  assertFits(schema, "JSONRPCMessage", frame);
  if (method !== undefined) {
    const kind = id === undefined ? "Notification" : "Request";
    const name = schema.byMethod(`${sender === "server" ? "Server" : "Client"}${kind}`, method);
    if (name === undefined) throw new Error(`${revision} has no ${sender} ${kind} ${method}: ${show(frame)}`);
    assertFits(schema, name, frame);
  } else if (error !== undefined) {
    const name = errors[(error as { readonly code: number }).code];
    assertFits(schema, schema.has("JSONRPCErrorResponse") ? "JSONRPCErrorResponse" : "JSONRPCError", frame);
    if (name !== undefined && schema.has(name)) assertFits(schema, name, frame);
  } else {
    if (request?.method === undefined) throw new Error(`A result of no request: ${show(frame)}`);
    assertFits(schema, resultName(schema, request.method, result), result);
  }
}

interface WireSchema {
  readonly revision: Revision;
  has(definition: string): boolean;
  /** The member of a union of messages that has this method. */
  byMethod(union: string, method: string): string | undefined;
  validator(definition: string): ValidateFunction;
}

function resultName(schema: WireSchema, method: string, result: unknown): string {
  if ((result as { readonly resultType?: unknown }).resultType === "input_required")
    return "InputRequiredResult";
  const name = results[method];
  if (name === undefined || !schema.has(name)) throw new Error(`${schema.revision} has no ${method}`);
  return name;
}

/**
 * Members we send on purpose to readers whose revision names them not yet: its schema is open there, and clients of that
 * age that know them profit (the text of a stream, the hint that completion is worth asking for).
 */
const early = new Set(["2024-11-05 /params message", "2024-11-05 /capabilities completions"]);

function isEarly({ revision }: WireSchema, { instancePath, params }: ErrorObject): boolean {
  return early.has(`${revision} ${instancePath} ${String(params["additionalProperty"])}`);
}

function assertFits(schema: WireSchema, definition: string, value: unknown): void {
  const validate = schema.validator(definition);
  validate(value);
  const errors = (validate.errors ?? []).filter((error) => !isEarly(schema, error));
  if (errors.length === 0) return;
  const faults = errors.map(
    ({ instancePath, message, params }) => `  ${instancePath || "/"} ${message} ${JSON.stringify(params)}`,
  );
  throw new Error(
    `Not a ${definition} of ${schema.revision}:\n${faults.slice(0, 12).join("\n")}\n${show(value)}`,
  );
}

function show(value: unknown): string {
  return JSON.stringify(value).slice(0, 2000);
}

type Node = { readonly [keyword: string]: unknown };

const loaded = new Map<Revision, WireSchema>();

function schemaOf(revision: Revision): WireSchema {
  const known = loaded.get(revision);
  if (known !== undefined) return known;
  const url = new URL(`../fixtures/schemas/${revision}.json`, import.meta.url);
  const schema = toWireSchema(revision, close(JSON.parse(readFileSync(url, "utf8"))) as Node);
  loaded.set(revision, schema);
  return schema;
}

function toWireSchema(revision: Revision, document: Node): WireSchema {
  const section = "$defs" in document ? "$defs" : "definitions";
  const definitions = document[section] as { readonly [name: string]: Node };
  const ajv =
    section === "$defs"
      ? new Ajv2020({ strict: false, allErrors: true })
      : new Ajv({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, revision);
  return {
    revision,
    has: (definition) => Object.hasOwn(definitions, definition),
    byMethod: (union, method) => {
      const members = (definitions[union]?.["anyOf"] ?? []) as readonly { readonly $ref: string }[];
      const names = members.map(({ $ref }) => $ref.slice($ref.lastIndexOf("/") + 1));
      return names.find((name) => methodOf(definitions[name]) === method);
    },
    validator: (definition) => {
      const validate = ajv.getSchema(`${revision}#/${section}/${definition}`);
      if (validate === undefined) throw new Error(`${revision} defines no ${definition}`);
      return validate;
    },
  };
}

function methodOf(definition: Node | undefined): unknown {
  const properties = definition?.["properties"] as { readonly method?: { readonly const?: unknown } };
  return properties?.method?.const;
}

/** Members that hold what others define. Whatever is in them is theirs. */
const open = new Set(["_meta", "inputSchema", "outputSchema", "experimental", "extensions"]);

/**
 * The schema with every object closed that lists its members and does not say that it is open. Older revisions describe
 * requests and notifications without their envelope, so `jsonrpc` and `id` are let through there.
 */
function close(node: unknown, name = ""): unknown {
  if (Array.isArray(node)) return node.map((item) => close(item));
  if (typeof node !== "object" || node === null || open.has(name) || name.endsWith("MetaObject")) return node;
  const closed: { [keyword: string]: unknown } = {};
  for (const [key, value] of Object.entries(node)) {
    closed[key] = key === "allOf" ? value : close(value, key);
  }
  const { properties } = closed as { properties?: Node };
  const listsMembers = closed["type"] === "object" && properties !== undefined;
  if (!listsMembers || "additionalProperties" in closed || "allOf" in closed) return closed;
  const envelope = "method" in properties ? { jsonrpc: true, id: true } : {};
  // Extensions are declared in the same member in older revisions, whose schemas do not list it (SEP-2133).
  const declared = "experimental" in properties ? { extensions: { type: "object" } } : {};
  return {
    ...closed,
    properties: { ...envelope, ...declared, ...properties },
    additionalProperties: false,
  };
}
