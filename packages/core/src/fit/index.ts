export { maxListMs } from "./compile-fault.ts";
export { assertDefinition, type Fit, fitPrompt, fitResource, fitTemplate, fitTool } from "./fit-listed.ts";
export { describeNotes, type ListFault, type ListPart, toListFault } from "./list-fault.ts";
