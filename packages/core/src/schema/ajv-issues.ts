import type { ErrorObject } from "ajv";
import { clip, describeValue, type Issue, maxIssues } from "./issue.ts";

/** Says in our words which fault ajv found: the place, the expected value and the value that came. */
export function toIssues(errors: readonly ErrorObject[], value: unknown): readonly Issue[] {
  const issues = new Map<string, Issue>();
  for (const error of errors) {
    const message = toMessage(error, value);
    // The branches of an anyOf often say the same.
    issues.set(`${error.instancePath}\n${message}`, { path: error.instancePath, message });
    if (issues.size === maxIssues) break;
  }
  return [...issues.values()];
}

function toMessage(error: ErrorObject, root: unknown): string {
  const params: Record<string, unknown> = error.params;
  const text = error.message ?? `must satisfy "${error.keyword}"`;
  switch (error.keyword) {
    case "required":
    case "dependentRequired":
    case "dependencies":
    case "false schema":
      return text;
    case "additionalProperties":
      return `must not have property ${quote(params["additionalProperty"])}`;
    case "unevaluatedProperties":
      return `must not have property ${quote(params["unevaluatedProperty"])}`;
    case "propertyNames":
      return `must not have property ${quote(params["propertyName"])}: the name is invalid`;
    case "enum":
      return `must be one of ${listOf(params["allowedValues"])}${got(error, root)}`;
    case "const":
      return `must be ${quote(params["allowedValue"])}${got(error, root)}`;
    default:
      return `${text}${got(error, root)}`;
  }
}

function listOf(values: unknown): string {
  return Array.isArray(values) ? clip(values.slice(0, 50).map(quote).join(", "), 200) : "the listed values";
}

function quote(value: unknown): string {
  return clip(JSON.stringify(value) ?? "undefined", 60);
}

function got(error: ErrorObject, root: unknown): string {
  let value = root;
  for (const token of error.instancePath.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return "";
    value = (value as Record<string, unknown>)[key];
  }
  return ` (got ${describeValue(value)})`;
}
