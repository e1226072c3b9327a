export { fromJsonSchema, guard, inspectJsonSchema } from "./ajv-schema.ts";
export { type Dialect, dialectOf } from "./dialect.ts";
export { compileAsSdk } from "./compile-as-sdk.ts";
export { clip, describeIssues, describeValue, type Issue, maxIssues, toPointer } from "./issue.ts";
export { assertWellWritten } from "./mistakes.ts";
export { type Position, positionOf, surveySchema } from "./survey.ts";
export { ExhaustedError, withinTime } from "./time-box.ts";
export {
  type Checked,
  defaultSchemaLimits,
  type JsonSchema,
  type Schema,
  type SchemaLimits,
} from "./types.ts";
