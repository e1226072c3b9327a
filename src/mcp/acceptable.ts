import type { RawJson } from "../json/raw.ts";
import type { Ask } from "./types.ts";

type Fields = { readonly [name: string]: unknown };

/**
 * Whether an answer may be passed on to the server that asked: it must be an answer to such a question at all. Of a form
 * that was accepted, the fields must be what was asked for: legacy servers rely on their client for that. The schemas of
 * forms are flat and have few keywords, all of which are looked at here but for `format`, which is advice to whoever
 * shows the form.
 */
export function isAcceptable(ask: Ask, answer: RawJson): boolean {
  if (answer.kind !== "object") return false;
  const { action, content, role, model, roots } = answer.value as Fields;
  switch (ask.method) {
    case "elicitation/create":
      if (action !== "accept") return action === "decline" || action === "cancel";
      return ask.params["mode"] === "url" || fitsSchema(content, ask.params["requestedSchema"]);
    case "sampling/createMessage":
      return (
        typeof role === "string" && typeof model === "string" && (isFields(content) || Array.isArray(content))
      );
    case "roots/list":
      return Array.isArray(roots);
  }
}

function fitsSchema(content: unknown = {}, schema: unknown): boolean {
  return isFields(content) && (!isFields(schema) || fitsForm(content, schema));
}

function fitsForm(content: Fields, { properties, required }: Fields): boolean {
  const wanted = Array.isArray(required) ? (required as readonly unknown[]) : [];
  if (wanted.some((name) => typeof name === "string" && !Object.hasOwn(content, name))) return false;
  if (!isFields(properties)) return true;
  return Object.entries(content).every(([name, value]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return !isFields(field) || fitsField(value, field);
  });
}

function fitsField(value: unknown, field: Fields): boolean {
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

function fitsArray(value: unknown, field: Fields): boolean {
  if (!Array.isArray(value) || !isWithin(value.length, field["minItems"], field["maxItems"])) return false;
  const { items } = field;
  return !isFields(items) || value.every((item) => fitsField(item, items));
}

/** The values a field may have, where it names them. */
function choicesOf({ enum: listed, oneOf, anyOf }: Fields): readonly unknown[] | undefined {
  if (Array.isArray(listed)) return listed as readonly unknown[];
  const titled = oneOf ?? anyOf;
  if (!Array.isArray(titled) || !titled.every((choice) => isFields(choice) && "const" in choice))
    return undefined;
  return titled.map((choice: Fields) => choice["const"]);
}

function isWithin(size: number, least: unknown, most: unknown): boolean {
  return !(typeof least === "number" && size < least) && !(typeof most === "number" && size > most);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
