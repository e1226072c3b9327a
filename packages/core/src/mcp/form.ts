/** The part of a Standard Schema that a form needs. Core depends on no package, not even for types. */
export interface SelfDescribing {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly jsonSchema?: {
      input(options: { readonly target: "draft-2020-12" }): { readonly [name: string]: unknown };
    };
  };
}

/** The schema of a form, or of one field of it; also the content of a filled-in form. */
type FormFields = { readonly [name: string]: unknown };

/**
 * Whether the content of a form is what its schema asks for. The schemas of forms are flat and have few keywords, all of
 * which are looked at here but for `format`, which is advice to the program that shows the form.
 */
export function fitsForm(content: unknown = {}, schema: unknown): boolean {
  return isFields(content) && (!isFields(schema) || fitsFields(content, schema));
}

function fitsFields(content: FormFields, { properties, required }: FormFields): boolean {
  const wanted = Array.isArray(required) ? (required as readonly unknown[]) : [];
  if (wanted.some((name) => typeof name === "string" && !Object.hasOwn(content, name))) return false;
  if (!isFields(properties)) return true;
  return Object.entries(content).every(([name, value]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return !isFields(field) || fitsField(value, field);
  });
}

function fitsField(value: unknown, field: FormFields): boolean {
  const choices = choicesOf(field);
  if (choices !== undefined && !choices.includes(value)) return false;
  switch (field["type"]) {
    case "string":
      return (
        typeof value === "string" &&
        isWithin(Array.from(value).length, field["minLength"], field["maxLength"])
      );
    case "integer":
      return Number.isInteger(value) && isWithin(value as number, field["minimum"], field["maximum"]);
    case "number":
      return typeof value === "number" && isWithin(value, field["minimum"], field["maximum"]);
    case "boolean":
      return typeof value === "boolean";
    case "array":
      return fitsArray(value, field);
    default:
      return true;
  }
}

function fitsArray(value: unknown, field: FormFields): boolean {
  if (!Array.isArray(value) || !isWithin(value.length, field["minItems"], field["maxItems"])) return false;
  const { items } = field;
  return !isFields(items) || value.every((item) => fitsField(item, items));
}

/** The values a field may have, where it names them. */
function choicesOf({ enum: listed, oneOf, anyOf }: FormFields): readonly unknown[] | undefined {
  if (Array.isArray(listed)) return listed as readonly unknown[];
  const titled = oneOf ?? anyOf;
  if (!Array.isArray(titled) || !titled.every((choice) => isFields(choice) && "const" in choice))
    return undefined;
  return titled.map((choice: FormFields) => choice["const"]);
}

function isWithin(size: number, least: unknown, most: unknown): boolean {
  return !(typeof least === "number" && size < least) && !(typeof most === "number" && size > most);
}

function isFields(value: unknown): value is FormFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A form as 2025-06-18 knows it: single choices by `enum` and `enumNames`, no multiple choice, few defaults. */
export function projectForm(schema: unknown): FormFields | undefined {
  const { $schema: _, properties, ...rest } = (schema ?? {}) as FormFields;
  const fields = Object.create(null) as Record<string, unknown>;
  for (const [name, field] of Object.entries((properties ?? {}) as FormFields)) {
    const projected = projectField((field ?? {}) as FormFields);
    if (projected === undefined) return undefined;
    fields[name] = projected;
  }
  return { ...rest, properties: fields };
}

function projectField(field: FormFields): FormFields | undefined {
  if (field["type"] === "array") return undefined;
  const { default: preset, oneOf, ...rest } = field;
  const kept = field["type"] === "boolean" && preset !== undefined ? { ...rest, default: preset } : rest;
  if (!Array.isArray(oneOf)) return kept;
  const choices = oneOf as readonly { readonly const: string; readonly title?: string }[];
  return {
    ...kept,
    enum: choices.map((choice) => choice.const),
    enumNames: choices.map(({ title, const: value }) => title ?? value),
  };
}

const example = 'write { city: { type: "string" } }, or z.object({ city: z.string() })';

/** The schema of a form, from its fields or from a schema of an object. Throws a `TypeError` that says what to write. */
export function toForm(source: unknown, required: unknown): FormFields {
  const given = toFormSource(source);
  const { properties } = given;
  if (!isFields(properties)) throw new TypeError(`elicit: a form is an object of fields; ${example}`);
  for (const [name, field] of Object.entries(properties)) {
    const fault = findFieldFault(field);
    if (fault !== undefined) throw new TypeError(`elicit: the field ${JSON.stringify(name)} ${fault}`);
  }
  const listed: readonly unknown[] = Array.isArray(given["required"]) ? given["required"] : [];
  if (!Array.isArray(required))
    throw new TypeError('elicit: the names of required fields must be an array, such as ["city"]');
  const wanted = [...new Set([...listed, ...(required as readonly unknown[])])];
  const missing = wanted.find((name) => typeof name !== "string" || !Object.hasOwn(properties, name));
  if (missing !== undefined)
    throw new TypeError(
      `elicit: ${JSON.stringify(missing)} is required, but the fields are ${Object.keys(properties).join(", ")}`,
    );
  return { type: "object", properties, ...(wanted.length > 0 ? { required: wanted } : {}) };
}

/** A form as a JSON Schema. A field is an object, so a `type` that is a text, or `~standard`, tells a schema from fields. */
function toFormSource(source: unknown): FormFields {
  const isSchema = (typeof source === "object" || typeof source === "function") && source !== null;
  if (isSchema && "~standard" in source) {
    const { vendor, jsonSchema } = (source as SelfDescribing)["~standard"];
    if (jsonSchema === undefined)
      throw new TypeError(
        `elicit: this ${vendor} schema cannot say its own JSON Schema; write the fields: { city: { type: "string" } }`,
      );
    return jsonSchema.input({ target: "draft-2020-12" });
  }
  if (isFields(source) && typeof source["type"] === "string") return source;
  return { properties: source };
}

const fieldTypes = ["string", "number", "integer", "boolean", "array"];

/** Why clients cannot show a field; undefined when they can (2025-11-25, elicitation: requested schema). */
function findFieldFault(field: unknown): string | undefined {
  if (!isFields(field)) return `must be an object such as { type: "string" }; ${example}`;
  if ("~standard" in field) return "is a schema of a library: put z.object({ … }) around all fields";
  const { type, items } = field;
  if (!fieldTypes.includes(type as string))
    return `has the type ${JSON.stringify(type)}; forms have strings, numbers, integers, booleans and choices`;
  if (type !== "array" || (isFields(items) && choicesOf(items) !== undefined)) return undefined;
  return 'is an array; a choice of several is written { type: "array", items: { type: "string", enum: ["a", "b"] } }';
}
