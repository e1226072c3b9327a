import type { JsonSchema } from "@junctor/core/schema";
import {
  type GraphQLInputType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  type GraphQLArgument,
  type GraphQLInputField,
} from "graphql";
import { shorten } from "../openapi/schemas.ts";

const scalars: { readonly [name: string]: string } = {
  Int: "integer",
  Float: "number",
  Boolean: "boolean",
  String: "string",
  ID: "string",
};

/** The most characters of all definitions of one tool. */
const maxDefinitions = 24 * 1024;
const maxDescription = 300;

type Input = Pick<GraphQLArgument | GraphQLInputField, "name" | "type" | "description" | "defaultValue">;

/** The arguments of a field, or the variables of a document, as JSON Schema. Types of objects become `$defs`, once each. */
export function toInputSchema(inputs: readonly Input[]): { readonly type: "object" } & JsonSchema {
  const definitions = new Map<string, JsonSchema>();
  let left = maxDefinitions;
  const write = (type: GraphQLInputType): JsonSchema => {
    if (isNonNullType(type)) return writeNamed(type.ofType);
    const schema = writeNamed(type);
    return typeof schema["type"] === "string" && schema["enum"] === undefined
      ? { ...schema, type: [schema["type"], "null"] }
      : schema;
  };
  const writeNamed = (type: GraphQLInputType): JsonSchema => {
    if (isNonNullType(type)) return write(type);
    if (isListType(type)) return { type: "array", items: write(type.ofType) };
    if (isEnumType(type)) return { type: "string", enum: type.getValues().map(({ name }) => name) };
    if (!isInputObjectType(type)) {
      const known = scalars[type.name];
      return known === undefined ? { description: `A ${type.name}` } : { type: known };
    }
    if (!definitions.has(type.name)) {
      // Before its fields, which may lead back to it.
      definitions.set(type.name, {});
      const written = left > 0 ? writeFields(Object.values(type.getFields())) : {};
      left -= JSON.stringify(written).length;
      definitions.set(
        type.name,
        left > 0 ? written : { type: "object", description: "Too long to be described here." },
      );
    }
    return { $ref: `#/$defs/${type.name}` };
  };
  const writeFields = (fields: readonly Input[]): { readonly type: "object" } & JsonSchema => {
    const properties = fields.map(({ name, type, description, defaultValue }) => {
      const about = typeof description === "string" ? shorten(description, maxDescription) : "";
      const usual = isPlain(defaultValue) ? { default: defaultValue } : {};
      return [name, { ...write(type), ...(about === "" ? {} : { description: about }), ...usual }] as const;
    });
    const required = fields.filter(
      ({ type, defaultValue }) => isNonNullType(type) && defaultValue === undefined,
    );
    return {
      type: "object",
      properties: Object.fromEntries(properties),
      ...(required.length === 0 ? {} : { required: required.map(({ name }) => name) }),
      additionalProperties: false,
    };
  };
  const schema = writeFields(inputs);
  return definitions.size === 0 ? schema : { ...schema, $defs: Object.fromEntries(definitions) };
}

function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}
