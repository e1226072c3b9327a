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
