export { fromJsonSchema, guard, inspectJsonSchema, compileAsSdk } from "./ajv-schema.ts";
export { type Dialect, dialectOf } from "./dialect.ts";
export {
  clip,
  describeIssues,
  describeValue,
  type Issue,
  maxIssues,
  toPointer,
  type Checked,
  defaultSchemaLimits,
  type JsonSchema,
  type Schema,
  type SchemaLimits,
} from "./types.ts";
export { assertWellWritten, type Position, positionOf, surveySchema } from "./survey.ts";
export { ExhaustedError, withinTime } from "./time-box.ts";
