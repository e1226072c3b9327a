// A value for a JSON Schema: every member that is described, as plain as it can be.

import fc from "fast-check";

const maxDepth = 6;

export function sample(schema, root, depth = 0) {
  if (typeof schema !== "object" || schema === null) return "x";
  if (schema.$ref !== undefined)
    return sample(root.$defs?.[schema.$ref.slice("#/$defs/".length)], root, depth + 1);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum.find((each) => each !== null) ?? null;
  if (schema.default !== undefined && schema.default !== null && schema.default !== "") return schema.default;
  const { type: given, allOf, anyOf } = schema;
  const type = Array.isArray(given) ? given.find((each) => each !== "null") : given;
  if (allOf !== undefined) {
    const parts = [
      ...allOf.map((each) => sample(each, root, depth + 1)),
      ...(schema.properties ? [sampleObject(schema, root, depth)] : []),
    ];
    return parts.every((each) => typeof each === "object" && !Array.isArray(each))
      ? Object.assign({}, ...parts)
      : parts[0];
  }
  if (anyOf !== undefined && schema.properties === undefined) return sample(anyOf[0], root, depth + 1);
  if (type === "object" || schema.properties !== undefined) return sampleObject(schema, root, depth);
  if (type === "array") return sampleArray(schema, root, depth);
  if (type === "integer" || type === "number") return sampleNumber(schema);
  if (type === "boolean") return true;
  if (type === "null") return null;
  return sampleText(schema);
}

function sampleObject({ properties = {}, required = [] }, root, depth) {
  const names = Object.keys(properties).filter((name) => required.includes(name) || depth < maxDepth);
  return Object.fromEntries(names.map((name) => [name, sample(properties[name], root, depth + 1)]));
}

function sampleArray({ items, minItems = 1 }, root, depth) {
  if (depth > maxDepth && minItems <= 1) return [];
  return Array.from({ length: Math.max(1, minItems) }, () => sample(items, root, depth + 1));
}

function sampleNumber({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf = 1 }) {
  const least = minimum ?? (exclusiveMinimum === undefined ? 1 : exclusiveMinimum + 1);
  const number = Math.ceil(least / multipleOf) * multipleOf;
  return number <= (maximum ?? exclusiveMaximum ?? number) ? number : (maximum ?? least);
}

const formats = {
  date: "2026-01-31",
  "date-time": "2026-01-31T12:00:00Z",
  email: "ada@example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/x",
  uuid: "123e4567-e89b-42d3-a456-426614174000",
};

function sampleText({
  format,
  pattern,
  minLength = 0,
  maxLength = Number.POSITIVE_INFINITY,
  contentEncoding,
}) {
  const expression = pattern === undefined ? undefined : new RegExp(pattern, "u");
  const fits = (text) =>
    text.length >= minLength &&
    text.length <= maxLength &&
    (expression === undefined || expression.test(text));
  const plain = [
    formats[format],
    contentEncoding === "base64" ? "YQ==" : undefined,
    "x".padEnd(minLength, "x"),
  ];
  const found = plain.find((text) => text !== undefined && fits(text));
  if (found !== undefined || expression === undefined) return found ?? "x";
  try {
    const made = fc.sample(fc.stringMatching(expression), { numRuns: 200, seed: 35 });
    return made.find((text) => text !== "" && !/^\.{1,2}$/.test(text) && fits(text)) ?? "x";
  } catch {
    return "x"; // The expression has parts that cannot be made up.
  }
}
