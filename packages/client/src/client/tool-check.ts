import { SchemaError, ValidationError } from "@junctor/core/errors";
import type { Tool } from "@junctor/core/mcp";
import { fromJsonSchema, describeIssues, defaultSchemaLimits, type Schema } from "@junctor/core/schema";

/** Checks what goes to tools and comes back, by the schemas they list. */
export interface ToolCheck {
  /** Throws a `ValidationError` for arguments that do not fit. */
  checkArguments(tool: Tool, args: unknown): Promise<void>;
  /** Throws a `ValidationError` for structured output that does not fit, or is missing. */
  checkOutput(tool: Tool, structured: unknown): Promise<void>;
}

/**
 * Schemas are compiled when first needed and kept as long as their tool is. One that cannot be used is reported once
 * and not checked by: half the ecosystem would be unusable otherwise.
 */
export function createToolCheck(onWarning: (text: string) => void): ToolCheck {
  const schemas = new WeakMap<object, Schema | "unusable">();

  const schemaOf = (tool: Tool, json: { readonly [keyword: string]: unknown }): Schema | undefined => {
    let schema = schemas.get(json);
    if (schema === undefined) {
      schema = usable(() => fromJsonSchema(json, defaultSchemaLimits), tool) ?? "unusable";
      schemas.set(json, schema);
    }
    return schema === "unusable" ? undefined : schema;
  };
  const usable = <T>(use: () => T, tool: Tool): T | undefined => {
    try {
      return use();
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      onWarning(`A schema of the tool ${tool.name} is not checked by: ${error.message}`);
      return undefined;
    }
  };
  const check = async (
    tool: Tool,
    json: { readonly [keyword: string]: unknown },
    value: unknown,
    subject: "arguments" | "output",
  ): Promise<void> => {
    const schema = schemaOf(tool, json);
    if (schema === undefined) return;
    try {
      const checked = await schema.check(value);
      if (checked.ok) return;
      const said = describeIssues(
        checked.issues,
        subject === "arguments" ? "Invalid arguments" : "Invalid output",
      );
      throw new ValidationError(tool.name, subject, checked.issues, said);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      schemas.set(json, "unusable");
      onWarning(`A schema of the tool ${tool.name} is not checked by: ${error.message}`);
    }
  };

  return {
    checkArguments: (tool, args) => check(tool, tool.inputSchema, args, "arguments"),
    checkOutput: async (tool, structured) => {
      if (tool.outputSchema === undefined) return;
      if (structured !== undefined) return check(tool, tool.outputSchema, structured, "output");
      const issues = [{ path: "", message: "structuredContent is missing" }];
      throw new ValidationError(tool.name, "output", issues, describeIssues(issues, "Invalid output"));
    },
  };
}
