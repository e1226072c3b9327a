// What a JSON Schema means for a form: which kind of field a value gets, and what is wrong with what was typed.

/** A JSON Schema, as far as the forms of this page look at it. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: { readonly [name: string]: JsonSchema };
  readonly definitions?: { readonly [name: string]: JsonSchema };
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly enumNames?: readonly string[];
  readonly oneOf?: readonly JsonSchema[];
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly not?: unknown;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly contentEncoding?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema | boolean;
  readonly prefixItems?: unknown;
  readonly properties?: { readonly [name: string]: JsonSchema | boolean };
  readonly additionalProperties?: JsonSchema | boolean;
  readonly required?: readonly string[];
}

/** The value of a form that is being filled in: JSON, where a member that is left empty is undefined. */
export type FormValue = unknown;

/** Text of a JSON field that does not parse yet. */
export class UnfinishedJson {
  readonly text: string;
  readonly fault: string;

  constructor(text: string, fault: string) {
    this.text = text;
    this.fault = fault;
  }
}

export function toJson(text: string): FormValue {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    return new UnfinishedJson(text, describeJsonFault(text, String(error)));
  }
}

function describeJsonFault(text: string, message: string): string {
  const at = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
  const before = text.slice(0, at).split("\n");
  return `This is not JSON: line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}.`;
}

export type FieldKind =
  | "const"
  | "choice"
  | "boolean"
  | "number"
  | "string"
  | "file"
  | "object"
  | "record"
  | "boxes"
  | "list"
  | "union"
  | "json";

/** Deeper parts are typed as JSON. */
const maxDepth = 5;

/** A schema with its reference followed and its `allOf` merged. `seen` are the references on the way here. */
export interface Resolved {
  readonly schema: JsonSchema;
  readonly seen: readonly string[];
  /** Whether a reference leads in a circle, or to nothing. */
  readonly isLost: boolean;
}

export function resolve(
  unresolved: JsonSchema | boolean | undefined,
  root: JsonSchema,
  seen: readonly string[] = [],
): Resolved {
  const schema: JsonSchema = typeof unresolved === "object" && unresolved !== null ? unresolved : {};
  if (schema.$ref !== undefined) {
    const { $ref, ...rest } = schema;
    const found = lookUp($ref, root);
    if (found === undefined || seen.includes($ref)) return { schema: rest, seen, isLost: true };
    const target = resolve(found, root, [...seen, $ref]);
    return { ...target, schema: { ...target.schema, ...rest } };
  }
  if (schema.allOf === undefined) return { schema, seen, isLost: false };
  const { allOf, ...rest } = schema;
  const parts = [rest, ...allOf.map((part) => resolve(part, root, seen).schema)];
  return {
    schema: Object.assign({}, ...parts, {
      properties: Object.assign({}, ...parts.map(({ properties }) => properties)) as JsonSchema["properties"],
      required: parts.flatMap(({ required = [] }) => required),
    }) as JsonSchema,
    seen,
    isLost: false,
  };
}

function lookUp(ref: string, root: JsonSchema): JsonSchema | undefined {
  if (ref === "#") return root;
  const path = /^#\/(.+)$/.exec(ref)?.[1]?.split("/");
  let at: unknown = path === undefined ? undefined : root;
  for (const part of path ?? []) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return isObject(at) ? at : undefined;
}

export function typesOf({ type }: JsonSchema): readonly string[] {
  return typeof type === "string" ? [type] : (type ?? []);
}

export function kindOf({ schema, isLost }: Resolved, root: JsonSchema, depth: number): FieldKind {
  if (isLost || depth > maxDepth || schema.not !== undefined || schema.prefixItems !== undefined)
    return "json";
  if (schema.const !== undefined) return "const";
  if (choicesOf(schema) !== undefined) return "choice";
  if (branchesOf(schema).length > 1) return "union";
  const [type] = typesOf(schema).filter((each) => each !== "null");
  if (type === "boolean") return type;
  if (type === "number" || type === "integer") return "number";
  if (type === "string") return schema.contentEncoding === "base64" ? "file" : "string";
  if (type === "array" && typeof schema.items === "object") {
    const items = resolve(schema.items, root).schema;
    return choicesOf(items) === undefined ? "list" : "boxes";
  }
  if (type === "object" || (type === undefined && schema.properties !== undefined)) {
    if (Object.keys(schema.properties ?? {}).length > 0) return "object";
    if (typeof schema.additionalProperties === "object") return "record";
  }
  return "json";
}

export interface Choice {
  readonly value: unknown;
  readonly label: string;
}

/** The values to choose from: `enum`, or `oneOf` with constants and titles. */
export function choicesOf(schema: JsonSchema): readonly Choice[] | undefined {
  if (schema.enum !== undefined)
    return schema.enum.map((value, i) => ({ value, label: schema.enumNames?.[i] ?? String(value) }));
  const titled = schema.oneOf ?? schema.anyOf;
  if (titled === undefined || titled.length === 0 || titled.some((each) => each.const === undefined))
    return undefined;
  return titled.map(({ const: value, title }) => ({ value, label: title ?? String(value) }));
}

/** The alternatives of a schema, without `null`: leaving a value out means the same. */
export function branchesOf({ oneOf, anyOf }: JsonSchema): readonly JsonSchema[] {
  return (oneOf ?? anyOf ?? []).filter(({ type }) => type !== "null");
}

/** What a branch is called: its title, the constant that tells it apart, or its type. */
export function branchName(unresolved: JsonSchema, root: JsonSchema, index: number): string {
  const { schema } = resolve(unresolved, root);
  if (schema.title !== undefined) return schema.title;
  for (const member of Object.values(schema.properties ?? {}))
    if (typeof member === "object" && typeof member.const === "string") return member.const;
  return typesOf(schema)[0] ?? `way ${index + 1}`;
}

/** The type in words, at the right of a label. */
export function describeType(
  resolved: Resolved,
  kind: FieldKind,
  root: JsonSchema,
  value: FormValue,
): string {
  const { schema } = resolved;
  const { minimum, maximum, minItems, maxItems, format } = schema;
  const span = (least: number | undefined, most: number | undefined): string =>
    least === undefined
      ? most === undefined
        ? ""
        : `at most ${most}`
      : most === undefined
        ? `at least ${least}`
        : `${least} to ${most}`;
  const [type = "any"] = typesOf(schema).filter((each) => each !== "null");
  switch (kind) {
    case "number":
      return [type, span(minimum, maximum)].filter(Boolean).join(", ");
    case "boxes":
      return `choose ${span(minItems, maxItems) || "any"}`;
    case "list": {
      const items = typesOf(resolve(schema.items, root).schema)[0] ?? "value";
      return `list of ${items}s${Array.isArray(value) ? `, ${value.length}` : ""}`;
    }
    case "union":
      return `one of ${branchesOf(schema).length}`;
    case "record":
      return "names and values";
    case "json":
      return "JSON";
    case "choice":
      return "one of";
    default:
      return format ?? type;
  }
}

export interface FieldFault {
  /** The id of the field. */
  readonly id: string;
  readonly label: string;
  readonly message: string;
}

interface FieldPlace {
  readonly id: string;
  readonly label: string;
  readonly root: JsonSchema;
  readonly isRequired: boolean;
  readonly depth: number;
  readonly seen: readonly string[];
}

/** Everything that is wrong with a value, as far as a form can tell; the server checks the rest. */
export function findFaults(
  unresolved: JsonSchema | boolean | undefined,
  value: FormValue,
  at: FieldPlace,
): readonly FieldFault[] {
  const resolved = resolve(unresolved, at.root, at.seen);
  const { schema, seen } = resolved;
  const fault = (message: string): readonly FieldFault[] => [{ id: at.id, label: at.label, message }];
  if (value instanceof UnfinishedJson) return fault(value.fault);
  const isNullable = typesOf(schema).includes("null");
  if (value === undefined || (value === null && isNullable))
    return at.isRequired && !isNullable && schema.const === undefined ? fault("This is needed.") : [];
  const inner = (id: string, label: string, isRequired: boolean): FieldPlace => ({
    ...at,
    id: `${at.id}-${id}`,
    label,
    isRequired,
    depth: at.depth + 1,
    seen,
  });
  const kind = kindOf(resolved, at.root, at.depth);
  switch (kind) {
    case "string":
      return findTextFault(schema, typeof value === "string" ? value : "").flatMap(fault);
    case "number":
      return findNumberFault(schema, value).flatMap(fault);
    case "choice":
      return choicesOf(schema)?.some((choice) => choice.value === value) === true
        ? []
        : fault("This is not one of the choices.");
    case "boxes":
    case "list": {
      const items = Array.isArray(value) ? value : [];
      const { minItems = 0, maxItems = Infinity } = schema;
      const counted =
        items.length < minItems
          ? fault(`At least ${minItems}.`)
          : items.length > maxItems
            ? fault(`At most ${maxItems}.`)
            : [];
      if (kind === "boxes") return counted;
      return [
        ...counted,
        ...items.flatMap((item, i) =>
          findFaults(schema.items, item, inner(String(i), `${at.label} ${i + 1}`, true)),
        ),
      ];
    }
    case "object": {
      const members = isObject(value) ? value : {};
      return Object.entries(schema.properties ?? {}).flatMap(([name, member]) =>
        findFaults(
          member,
          Object.hasOwn(members, name) ? members[name] : undefined,
          inner(
            name,
            at.depth === 0 ? labelOf(name, member) : `${labelOf(name, member)} of ${at.label}`,
            schema.required?.includes(name) === true,
          ),
        ),
      );
    }
    default:
      return [];
  }
}

export function labelOf(name: string, schema: JsonSchema | boolean): string {
  return (typeof schema === "object" ? schema.title : undefined) ?? name;
}

const formats: { readonly [format: string]: readonly [RegExp, string] } = {
  email: [/^[^\s@]+@[^\s@]+\.[^\s@]+$/, "This is not a whole email address."],
  uri: [/^[a-z][a-z0-9+.-]*:\S+$/i, "This is not a whole address: it begins with https:// or the like."],
  uuid: [/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i, "This is not a UUID."],
};

function findTextFault(
  { format = "", minLength = 0, maxLength = Infinity }: JsonSchema,
  text: string,
): readonly string[] {
  const length = Array.from(text).length;
  if (length < minLength) return [`At least ${minLength} characters.`];
  if (length > maxLength) return [`At most ${maxLength} characters.`];
  const [pattern, message = ""] = Object.hasOwn(formats, format) ? (formats[format] ?? []) : [];
  return pattern === undefined || pattern.test(text) ? [] : [message];
}

function findNumberFault(
  { minimum = -Infinity, maximum = Infinity, type }: JsonSchema,
  value: unknown,
): readonly string[] {
  if (typeof value !== "number" || Number.isNaN(value)) return ["This is not a number."];
  if (type === "integer" && !Number.isInteger(value)) return ["This is a whole number."];
  if (value < minimum) return [`At least ${minimum}.`];
  return value > maximum ? [`At most ${maximum}.`] : [];
}

export type Members = { readonly [name: string]: FormValue };

export function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A copy with one member set, or removed if the value is undefined. Safe for names such as `__proto__`. */
export function withMember(members: Members, name: string, value: FormValue): FormValue {
  const rest = Object.entries(members).filter(([key]) => key !== name);
  return Object.fromEntries(value === undefined ? rest : [...rest, [name, value]]);
}

/** The defaults and constants that a schema states. */
export function defaultsOf(
  unresolved: JsonSchema | boolean | undefined,
  root: JsonSchema,
  depth = 0,
  seen: readonly string[] = [],
): FormValue {
  const resolved = resolve(unresolved, root, seen);
  const { schema } = resolved;
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (kindOf(resolved, root, depth) !== "object") return undefined;
  const members = Object.entries(schema.properties ?? {})
    .map(([name, member]) => [name, defaultsOf(member, root, depth + 1, resolved.seen)] as const)
    .filter(
      ([name, value]) =>
        value !== undefined &&
        (depth === 0 ||
          schema.required?.includes(name) === true ||
          typeof schema.properties?.[name] !== "boolean"),
    );
  return members.length === 0 ? undefined : Object.fromEntries(members);
}
