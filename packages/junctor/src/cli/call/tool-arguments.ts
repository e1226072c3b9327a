import { isJsonObject, type JsonObject } from "@junctor/core/json";
import type { Tool } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import { junctor } from "../../invocation/index.ts";
import {
  describeType,
  parseValue,
  toSafeLine,
  toSafeText,
  toValueType,
  UsageError,
  type ValueType,
} from "../terminal/index.ts";

/** One argument of a tool. */
interface ToolArgument {
  readonly name: string;
  /** As one would write it in a manual. */
  readonly type: string;
  readonly isRequired: boolean;
  readonly schema: JsonObject;
}

/** The arguments of a tool, those that it needs first. */
function argumentsOf(tool: Tool): readonly ToolArgument[] {
  const required = requiredOf(tool);
  const all = Object.entries(propertiesOf(tool)).map(([name, schema]) => ({
    name,
    type: describeType(typeOf(tool, name)),
    isRequired: required.includes(name),
    schema: isJsonObject(schema) ? schema : {},
  }));
  return all.toSorted((one, other) => Number(other.isRequired) - Number(one.isRequired));
}

/** A tool's arguments the way they are typed, what may be left out in brackets: `city=string [days=integer]`. */
export function synopsisOf(tool: Tool): string {
  return toSynopsis(tool, (name) => `${name}=${describeType(typeOf(tool, name))}`);
}

/** The same without types. */
export function namesOf(tool: Tool): string {
  return toSynopsis(tool, (name) => name);
}

function toSynopsis(tool: Tool, write: (name: string) => string): string {
  const required = requiredOf(tool);
  const isOptional = (name: string): boolean => !required.includes(name);
  return toSafeLine(
    Object.keys(propertiesOf(tool))
      .toSorted((a, b) => Number(isOptional(a)) - Number(isOptional(b)))
      .map((name) => (isOptional(name) ? `[${write(name)}]` : write(name)))
      .join(" "),
  );
}

/**
 * The arguments meant by `key=value` words: each value is read as the type its key has in the tool's schema. Throws a
 * {@link UsageError} that says which word is wrong and what the tool takes.
 */
export function parseAssignments(words: readonly string[], tool: Tool): JsonObject {
  const texts = new Map<string, string[]>();
  for (const word of words) {
    const [key, text] = split(word, tool);
    texts.set(key, [...(texts.get(key) ?? []), text]);
  }
  const args: { [name: string]: unknown } = {};
  for (const [key, given] of texts) {
    const parsed = parseValue(given, typeOf(tool, key));
    if (!parsed.ok) throw wrong(`${shown(key, given)} ${parsed.problem}`, tool);
    // A key may be "__proto__", and then a plain assignment would not make one.
    Object.defineProperty(args, key, { value: parsed.value, enumerable: true });
  }
  assertComplete(args, tool);
  return args;
}

/** The arguments given as one JSON object. */
export function parseArgumentsJson(text: string, tool: Tool): JsonObject {
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--args is not JSON: ${(error as Error).message}; write --args '{"name": "value"}'`);
  }
  if (!isJsonObject(args)) throw wrong(`--args needs a JSON object, such as '{"key":"value"}'`, tool);
  for (const key of Object.keys(args)) assertKnown(key, tool);
  assertComplete(args, tool);
  return args;
}

function split(word: string, tool: Tool): readonly [key: string, text: string] {
  const at = word.indexOf("=");
  if (at < 1) {
    const [only, ...others] = requiredOf(tool);
    const meant = only !== undefined && others.length === 0 ? `; did you mean ${only}=${word}?` : "";
    throw wrong(`${JSON.stringify(word)} is not of the form key=value${meant}`, tool);
  }
  const key = word.slice(0, at);
  assertKnown(key, tool);
  return [key, word.slice(at + 1)];
}

/**
 * A schema that says nothing of other keys allows them, but a person who types one has most likely misspelt it, and the
 * tool would ignore it silently.
 */
function assertKnown(key: string, tool: Tool): void {
  const names = Object.keys(propertiesOf(tool));
  const { additionalProperties, patternProperties } = tool.inputSchema;
  const isOpen =
    additionalProperties === true || isJsonObject(additionalProperties) || patternProperties !== undefined;
  // A schema without properties of its own may have them in parts (`anyOf`, `$ref`); the check of the whole decides.
  if (names.includes(key) || isOpen || (names.length === 0 && !isClosed(tool))) return;
  const hint = suggest(key, names, "");
  throw wrong(`there is no argument ${JSON.stringify(key)}${hint && `; ${hint}`}`, tool);
}

function isClosed({ inputSchema }: Tool): boolean {
  const parts = ["$ref", "anyOf", "oneOf", "allOf", "if", "dependentSchemas"];
  return inputSchema["additionalProperties"] === false || !parts.some((part) => part in inputSchema);
}

function assertComplete(args: JsonObject, tool: Tool): void {
  const missing = requiredOf(tool).filter((name) => !Object.hasOwn(args, name));
  if (missing.length > 0)
    throw wrong(`${missing.join(" and ")} ${missing.length > 1 ? "are" : "is"} missing`, tool);
}

function wrong(problem: string, tool: Tool): UsageError {
  const synopsis = synopsisOf(tool);
  const takes = synopsis === "" ? "no arguments" : synopsis;
  return new UsageError(`${problem} (${toSafeLine(tool.name)} takes ${takes})`);
}

function shown(key: string, texts: readonly string[]): string {
  const word = `${key}=${texts.length === 1 ? texts[0] : "…"}`;
  return toSafeLine(word.length > 80 ? `${word.slice(0, 79)}…` : word);
}

function typeOf({ inputSchema, ...tool }: Tool, name: string): ValueType {
  const properties = propertiesOf({ inputSchema, ...tool });
  const schema = Object.hasOwn(properties, name) ? properties[name] : inputSchema["additionalProperties"];
  return toValueType(schema, inputSchema);
}

function propertiesOf({ inputSchema }: Tool): JsonObject {
  const { properties } = inputSchema;
  return isJsonObject(properties) ? properties : {};
}

function requiredOf({ inputSchema }: Tool): readonly string[] {
  const { required } = inputSchema;
  return Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
}

/** What a tool takes, for people who are about to call it. */
export function describeTool(tool: Tool): string {
  const { title, description, annotations = {} } = tool;
  const rows = argumentsOf(tool).map(({ name, type, isRequired, schema }) => {
    const { description: about, default: standard } = schema;
    const more = [
      ...(isRequired ? ["required"] : []),
      ...(typeof about === "string" ? [about] : []),
      ...(standard === undefined ? [] : [`(default ${JSON.stringify(standard)})`]),
    ];
    return [
      toSafeLine(`${name}=${type}`),
      toSafeLine(more.join("; ").replace("; (default", " (default")),
    ] as const;
  });
  const width = Math.max(0, ...rows.map(([argument]) => argument.length));
  const hints = [
    ...(annotations.readOnlyHint === true ? ["changes nothing"] : []),
    ...(annotations.destructiveHint === true ? ["may delete or overwrite"] : []),
    ...(annotations.idempotentHint === true ? ["may be called again with the same arguments"] : []),
  ];
  return [
    `Usage: ${junctor("call")} ${toSafeLine(tool.name)} ${synopsisOf(tool)}`.trimEnd(),
    ...(title === undefined ? [] : ["", toSafeLine(title)]),
    ...(description === undefined ? [] : ["", toSafeText(description).trim()]),
    "",
    ...(rows.length === 0 ? ["It takes no arguments."] : ["Arguments:"]),
    ...rows.map(([argument, more]) => `  ${argument.padEnd(width)}  ${more}`.trimEnd()),
    ...(hints.length === 0 ? [] : ["", `Its server says that it ${hints.join(", and ")}.`]),
    "",
    `${junctor("call")} --help shows the flags.`,
    "",
  ].join("\n");
}
