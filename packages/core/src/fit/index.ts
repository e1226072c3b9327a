export { maxListMs } from "./compile-fault.ts";
export {
  assertDefinition,
  type Fit,
  fitPrompt,
  fitResource,
  fitTemplate,
  fitTool,
  describeNotes,
  type ListFault,
  type ListPart,
  toListFault,
} from "./fit-listed.ts";
