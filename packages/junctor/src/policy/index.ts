export {
  type Access,
  type CallerKinds,
  createAccess,
  createCallerKinds,
  toNaming,
  type Unnamed,
} from "./access.ts";
export { findDeadRules } from "./dead-rules.ts";
export { explainAccess } from "./explain.ts";
export { withOpenedMethods } from "./opened-methods.ts";
export { RuleWatch } from "./rule-watch.ts";
export { compileRules } from "./rules.ts";
export { SeenCallers } from "./seen-callers.ts";
export { findUnmatchedRules } from "./unmatched-rules.ts";
