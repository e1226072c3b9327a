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
import { describeValue } from "../schema/index.ts";
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
} from "./check.ts";
import { type Budget, findCompileFault } from "./compile-fault.ts";
import type { ListPart } from "./list-fault.ts";
import { mendInputSchema, mendOutputSchema } from "./schemas.ts";

/** A listed thing as every client takes it, with what had to be changed for that; or why it cannot be. */
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

/** An icon without a usable address is no icon. */
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

/** A tool. Compiles its output schema if a glance does not tell that clients can. */
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
  const given = "inputSchema" in fields ? fields : { ...fields, inputSchema: undefined };
  const { item, notes } = mend<Tool>(raw, checkMembers(given, checks));
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

/** A resource. One whose `uri` is none makes typed clients refuse the list, and no client could read it. */
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

/** The members of a listed thing; a text when it is no object, or lacks the member it is known by. */
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

/** Whether the calendar has such a day: `Date` would make March 2 of February 30. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

/** The members of the objects inside a definition. Clients ignore others, so one that is misspelt would do nothing. */
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
