import type { RawJson } from "../json/index.ts";
import {
  mirroringFault,
  type Icon,
  type Prompt,
  type PromptArgument,
  type Resource,
  type ResourceTemplate,
  type Tool,
  fromDefinition,
  withMembers,
} from "../mcp/index.ts";
import { defined, assertKnownKeys, keys, type KeysOf } from "../options/index.ts";
import { describeValue, clip, type Position, positionOf } from "../schema/index.ts";
import {
  arrayOf,
  boolean,
  type Check,
  checkMembers,
  type Checks,
  describeWrong,
  type Fields,
  type Mending,
  type Note,
  object,
  objectOf,
  oneOf,
  removed,
  replaced,
  string,
  isFields,
  withChanges,
  type Budget,
  findCompileFault,
} from "./compile-fault.ts";

/** A listed thing as every client accepts it, with what was changed for that; or why it cannot be mended. */
export type Fit<T> =
  | { readonly kind: "fit"; readonly item: T; readonly notes: readonly Note[] }
  | { readonly kind: "unfit"; readonly reason: string };

/** What the tools of a list have in common. */
export interface ToolTerms {
  /** Whether the server speaks a revision before 2026-07-28. */
  readonly isLegacy: boolean;
  /** Whether tools are called over modern HTTP, where a wrong `x-mcp-header` makes one unusable. */
  readonly isMirroring: boolean;
  /** Time for compiling output schemas. */
  readonly budget: Budget;
}

const icon: Check = objectOf(
  {
    src: (value) => (URL.canParse(value as string) ? undefined : removed(value, "not an absolute URI")),
    mimeType: string,
    sizes: arrayOf(string),
    theme: oneOf("light", "dark"),
  },
  "src",
);

/** An icon without a usable address is not an icon. */
const usableIcon: Check = (value) => {
  const mending = icon(value);
  const instead = mending?.instead as Fields | undefined;
  return mending === undefined || instead?.["src"] !== undefined
    ? mending
    : { ...mending, instead: undefined };
};

const shared: Checks = { title: string, description: string, icons: arrayOf(usableIcon), _meta: object };

const toolChecks: Checks = {
  ...shared,
  annotations: objectOf({
    title: string,
    readOnlyHint: boolean,
    destructiveHint: boolean,
    idempotentHint: boolean,
    openWorldHint: boolean,
  }),
  execution: objectOf({ taskSupport: oneOf("forbidden", "optional", "required") }),
};

/** RFC 3339 with seconds and an offset; what official clients accept as `lastModified`. */
const instant =
  /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const resourceChecks: Checks = {
  ...shared,
  mimeType: string,
  size: (value) =>
    Number.isSafeInteger(value) && (value as number) >= 0 ? undefined : removed(value, "not a size in bytes"),
  annotations: objectOf({
    audience: arrayOf(oneOf("user", "assistant")),
    priority: (value) =>
      typeof value === "number" && value >= 0 && value <= 1
        ? undefined
        : removed(value, "not a number from 0 to 1"),
    lastModified: (value) =>
      typeof value === "string" && instant.test(value) && isDay(value.slice(0, 10))
        ? undefined
        : removed(value, "not an RFC 3339 time with an offset"),
  }),
};

const promptChecks: Checks = {
  ...shared,
  arguments: arrayOf(objectOf({ title: string, description: string, required: boolean }, "name")),
};

/** Mends a tool. Compiles its output schema unless a quick check shows that clients can. */
export async function fitTool(raw: RawJson, terms: ToolTerms): Promise<Fit<Tool>> {
  const fields = fieldsOf(raw, "name");
  if (typeof fields === "string") return unfit(fields);
  const inputSchema = mendInputSchema(fields["inputSchema"]);
  if (typeof inputSchema === "string") return unfit(inputSchema);
  const checks: Checks = {
    ...toolChecks,
    inputSchema: () => inputSchema,
    outputSchema: (schema) => mendOutputSchema(schema, terms.isLegacy),
  };
  const withInput = "inputSchema" in fields ? fields : { ...fields, inputSchema: undefined };
  const { item, notes } = mend<Tool>(raw, checkMembers(withInput, checks));
  const mirroring = terms.isMirroring ? mirroringFault(item.inputSchema) : undefined;
  if (mirroring !== undefined) return unfit(mirroring);
  const fault = await findCompileFault(item, terms.budget);
  if (fault === undefined) return { kind: "fit", item, notes };
  const text = `removed: clients cannot compile it: ${fault}`;
  return {
    kind: "fit",
    item: withMembers<Tool>(item, { outputSchema: undefined }),
    notes: [...notes, { path: "outputSchema", text }],
  };
}

/** A resource. One whose `uri` is not a URI makes typed clients refuse the list, and no client could read it. */
export function fitResource(raw: RawJson): Fit<Resource> {
  const fields = fieldsOf(raw, "uri");
  if (typeof fields === "string") return unfit(fields);
  if (!URL.canParse(fields["uri"] as string)) return unfit("uri is not an absolute URI");
  return { kind: "fit", ...mend<Resource>(raw, checkMembers(...labelled(fields, "uri", resourceChecks))) };
}

export function fitTemplate(raw: RawJson): Fit<ResourceTemplate> {
  const fields = fieldsOf(raw, "uriTemplate");
  if (typeof fields === "string") return unfit(fields);
  if (!/^(?:[^{}]|\{[^{}]+\})+$/.test(fields["uriTemplate"] as string))
    return unfit("uriTemplate is not a URI template: its braces do not pair up");
  const { size: _, ...checks } = resourceChecks;
  return {
    kind: "fit",
    ...mend<ResourceTemplate>(raw, checkMembers(...labelled(fields, "uriTemplate", checks))),
  };
}

export function fitPrompt(raw: RawJson): Fit<Prompt> {
  const fields = fieldsOf(raw, "name");
  if (typeof fields === "string") return unfit(fields);
  return { kind: "fit", ...mend<Prompt>(raw, checkMembers(fields, promptChecks)) };
}

/**
 * The members of a listed thing; a text that says why if it is not an object, or lacks
 * the member it is known by.
 */
function fieldsOf(raw: RawJson, key: string): Fields | string {
  if (raw.kind !== "object") return `it is ${describeValue(raw.value)}, not an object`;
  const fields = raw.value as Fields;
  return typeof fields[key] === "string" ? fields : `${key} is ${describeWrong(fields[key], "a string")}`;
}

/** Resources must have a name too, which is for people only: the title or the address will do. */
function labelled(fields: Fields, address: string, checks: Checks): [Fields, Checks] {
  if (typeof fields["name"] === "string") return [fields, checks];
  const label = typeof fields["title"] === "string" ? "title" : address;
  const name = (): Mending =>
    replaced(fields[label], `set to its ${label}: it is ${describeWrong(fields["name"], "a string")}`);
  return [
    { ...fields, name: undefined },
    { ...checks, name },
  ];
}

function mend<T extends object>(
  raw: RawJson,
  { changes, notes }: ReturnType<typeof checkMembers>,
): { readonly item: T; readonly notes: readonly Note[] } {
  const item = fromDefinition<T>(raw);
  return { item: notes.length === 0 ? item : withMembers(item, changes as Partial<T>), notes };
}

function unfit(reason: string): { readonly kind: "unfit"; readonly reason: string } {
  return { kind: "unfit", reason };
}

/** Whether the calendar has such a day: `Date` would turn February 30 into March 2. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/**
 * The members of the objects inside a definition. Clients ignore other members, so a
 * misspelt one would do nothing.
 */
const annotationKeys = {
  tools: keys("title readOnlyHint destructiveHint idempotentHint openWorldHint"),
  resources: keys("audience priority lastModified"),
};
const iconKeys: KeysOf<Icon> = keys("src mimeType sizes theme");
const argumentKeys: KeysOf<PromptArgument> = keys("name title description required");

/**
 * Throws a `TypeError` for a definition of our own that clients would refuse, and often the whole list with it. `what` names it, such as
 * `Prompt "review"`.
 */
export function assertDefinition(
  part: ListPart,
  what: string,
  definition: Tool | Prompt | Resource | ResourceTemplate,
): void {
  const fields = defined(definition) as Fields;
  if (typeof fields["name"] !== "string" || fields["name"] === "")
    throw new TypeError(`${what}: the name must be a text that is not empty`);
  const checks = {
    tools: toolChecks,
    prompts: promptChecks,
    resources: resourceChecks,
    templates: resourceChecks,
  };
  const [note] = checkMembers(fields, checks[part]).notes;
  if (note !== undefined)
    throw new TypeError(`${what}: ${note.path} cannot be used: ${note.text.replace(/^removed: /, "")}`);
  const {
    annotations,
    icons = [],
    arguments: args = [],
  } = fields as {
    readonly annotations?: object;
    readonly icons?: readonly object[];
    readonly arguments?: readonly PromptArgument[];
  };
  if (annotations !== undefined)
    assertKnownKeys(
      `${what}: annotations`,
      annotations,
      annotationKeys[part === "tools" ? part : "resources"],
      {
        readOnly: "readOnlyHint",
        destructive: "destructiveHint",
        idempotent: "idempotentHint",
        openWorld: "openWorldHint",
      },
    );
  for (const [index, one] of icons.entries()) assertKnownKeys(`${what}: icons[${index}]`, one, iconKeys);
  for (const [index, one] of args.entries()) {
    assertKnownKeys(`${what}: arguments[${index}]`, one, argumentKeys);
    if (args.findIndex(({ name }) => name === one.name) !== index)
      throw new TypeError(`${what}: two arguments have the name ${JSON.stringify(one.name)}`);
  }
}

/** The lists a server has. */
export type ListPart = "tools" | "resources" | "templates" | "prompts";

/** A listed thing that clients would refuse, and with it the whole list. */
export interface ListFault {
  readonly part: ListPart;
  /** What its server calls it: a name, a URI or a URI template, in 200 characters at most; `#3` for the third if it has none. */
  readonly name: string;
  /** Whether it is missing from the list. Otherwise it was mended, without changing its meaning. */
  readonly isLeftOut: boolean;
  /** The fault, and what was done about it, in 500 characters at most. */
  readonly reason: string;
}

const maxNotes = 5;

/** A fault whose texts may be shown anywhere: servers choose parts of them. */
export function toListFault(part: ListPart, name: string, isLeftOut: boolean, reason: string): ListFault {
  return { part, name: clip(toLine(name), 200), isLeftOut, reason: clip(toLine(reason), 500) };
}

/** What was changed in one thing, as a sentence. */
export function describeNotes(notes: readonly Note[]): string {
  const texts = notes.slice(0, maxNotes).map(({ path, text }) => `${path} ${text}`);
  const more = notes.length - texts.length;
  return [...texts, ...(more > 0 ? [`${more} more changes`] : [])].join("; ");
}

/** Without characters that break lines, steer a terminal, or make text run the other way (CVE-2021-42574). */
function toLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}

/** A schema that accepts the arguments of any call: they are always an object. */
const anyObject: Fields = { type: "object" };

/**
 * Changes a schema so that every client accepts it for the input of a tool. Arguments are always an
 * object, so saying that changes nothing. Returns a text if the schema accepts no object at all, so that
 * the tool cannot be called.
 */
function mendInputSchema(schema: unknown): Mending | string | undefined {
  // An empty array is how PHP writes an empty object.
  const isEmpty = schema === undefined || schema === null || schema === true;
  if (isEmpty || (Array.isArray(schema) && schema.length === 0))
    return replaced(anyObject, `set to {"type":"object"}: ${describeMissing(schema)}`);
  if (!isFields(schema)) return `inputSchema is ${describeValue(schema)}, not a JSON Schema of an object`;
  const type = mendType(schema);
  if (type === "other")
    return `inputSchema has the type ${describeValue(schema["type"])}, but arguments are always an object`;
  return mendKeywords(schema, type);
}

/**
 * The same for the structured output of a tool. Before 2026-07-28 its root must be an object too; a legacy
 * server's schema with another root fits no result of the server, so it is removed.
 */
function mendOutputSchema(schema: unknown, isLegacy: boolean): Mending | undefined {
  if (!isFields(schema)) return removedSchema(`${describeValue(schema)} is not an object`);
  const type = isLegacy ? mendType(schema) : undefined;
  if (type === "other") return removedSchema(`its type is ${describeValue(schema["type"])}, not "object"`);
  const ids = removeIds(schema);
  if (ids === undefined || ids.instead === undefined) return ids ?? mendKeywords(schema, type);
  const rest = mendKeywords(ids.instead as Fields, type);
  return { instead: rest?.instead ?? ids.instead, notes: [...ids.notes, ...(rest?.notes ?? [])] };
}

/** What any schema of a tool needs, and a root type of "object" if there is a note about that. */
function mendKeywords(schema: Fields, type: Note | undefined): Mending | undefined {
  const finite = toFinite(schema) as Fields;
  const rest = checkMembers(finite, keywords);
  const notes = [
    ...(type === undefined ? [] : [type]),
    ...rest.notes,
    ...(finite === schema
      ? []
      : [{ path: "", text: "has numbers that no double holds: the largest is used" }]),
  ];
  if (notes.length === 0) return undefined;
  const changes = type === undefined ? rest.changes : { ...rest.changes, type: "object" };
  return { instead: withChanges(finite, changes), notes };
}

function removedSchema(reason: string): Mending {
  return { instead: undefined, notes: [{ path: "", text: `removed: ${reason}` }] };
}

function describeMissing(schema: unknown): string {
  return schema === undefined ? "it is missing" : `it is ${describeValue(schema)}`;
}

/** The types of JSON Schema that no object has. */
const otherTypes = new Set<unknown>(["array", "string", "number", "integer", "boolean", "null"]);

/** What to note about a root type that can be made "object"; `other` when it says that the value is not an object. */
function mendType({ type }: Fields): Note | "other" | undefined {
  if (type === "object") return undefined;
  const all: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (all.length > 0 && all.every((each) => otherTypes.has(each))) return "other";
  const was = type === undefined ? "missing" : describeValue(type);
  return { path: "type", text: `set to "object": it is ${was}` };
}

const strings: Check = (value) => {
  if (!Array.isArray(value)) return removedSchema(`${describeValue(value)} is not an array`);
  const kept = value.filter((entry) => typeof entry === "string");
  if (kept.length === value.length) return undefined;
  return replaced(kept, "loses the entries that are not strings");
};

/** Clients take objects only for the schemas of properties, though JSON Schema has booleans too. */
const properties: Check = (value) => {
  if (Array.isArray(value) && value.length === 0) return replaced({}, "set to {}: it is an empty array");
  if (!isFields(value)) return removedSchema(`${describeValue(value)} is not an object`);
  const wrong = Object.entries(value).filter(([, schema]) => !isFields(schema));
  if (wrong.length === 0) return undefined;
  const notes = wrong.map(([name, schema]) => {
    return { path: name, text: `set to ${JSON.stringify(toObject(schema))}: it is ${describeValue(schema)}` };
  });
  const mended = wrong.map(([name, schema]): [string, unknown] => [name, toObject(schema)]);
  return { instead: withChanges(value, Object.fromEntries(mended)), notes };
};

const toObject = (schema: unknown): object => (schema === false ? { not: {} } : {});

const keywords = { $schema: string, properties, required: strings };

/**
 * The same value if it has no number beyond what a double holds. Some clients refuse those, and others read
 * `null` where the definition was rewritten for their revision.
 */
function toFinite(value: unknown): unknown {
  if (typeof value === "number") return Number.isFinite(value) ? value : Math.sign(value) * Number.MAX_VALUE;
  if (Array.isArray(value)) {
    const finite = value.map(toFinite);
    return finite.some((entry, index) => entry !== value[index]) ? finite : value;
  }
  if (!isFields(value)) return value;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [key, toFinite(member)]);
  return members.some(([key, member]) => member !== value[key]) ? Object.fromEntries(members) : value;
}

/**
 * Takes the `$id`s out of an output schema. The official SDK v1 compiles the schemas of a whole list with one
 * validator, so two servers that use the same `$id` get each other's schema, or have the list refused. An
 * `$id` has no effect where nothing refers to it, or where it is at the root and all references begin with
 * `#`. Otherwise the whole schema is removed.
 */
function removeIds(schema: Fields): Mending | undefined {
  const { ids, references } = survey(schema, "schema", { ids: [], references: [] });
  if (ids.length === 0) return undefined;
  const isOnlyRoot = ids.length === 1 && ids[0] === schema;
  const isInert = isOnlyRoot ? references.every((ref) => ref.startsWith("#")) : references.length === 0;
  const reason = "another server's schema may have the same";
  if (!isInert)
    return { instead: undefined, notes: [{ path: "", text: `removed: it refers to an $id, and ${reason}` }] };
  return { instead: withoutIds(schema, "schema"), notes: [{ path: "$id", text: `removed: ${reason}` }] };
}

const dataKeywords = new Set(["const", "default", "enum", "examples"]);

/** Validators look for `$id` under keywords they do not know, too. */
function placeOf(parent: Position, key: string): Position {
  const position = positionOf(parent, key);
  return position === "data" && parent === "schema" && !dataKeywords.has(key) ? "schema" : position;
}

interface SchemaIds {
  readonly ids: Fields[];
  readonly references: string[];
}

function survey(value: unknown, position: Position, found: SchemaIds): SchemaIds {
  if (Array.isArray(value)) for (const entry of value) survey(entry, position, found);
  if (!isFields(value) || position === "data") return found;
  if (position === "schema") {
    if (typeof value["$id"] === "string") found.ids.push(value);
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"]) {
      const reference = value[keyword];
      if (typeof reference === "string") found.references.push(reference);
    }
  }
  for (const [key, member] of Object.entries(value)) survey(member, placeOf(position, key), found);
  return found;
}

function withoutIds(value: unknown, position: Position): unknown {
  if (Array.isArray(value)) return value.map((entry) => withoutIds(entry, position));
  if (!isFields(value) || position === "data") return value;
  const members = Object.entries(value).filter(
    ([key, member]) => position !== "schema" || key !== "$id" || typeof member !== "string",
  );
  return Object.fromEntries(
    members.map(([key, member]) => [key, withoutIds(member, placeOf(position, key))]),
  );
}
