export {
  type CallerPolicy,
  type CallerPolicyOptions,
  createCallerPolicy,
  findRevoked,
  type ListVariety,
  toCallerKind,
  toNaming,
  type Unnamed,
} from "./caller-policy.ts";
export { findDeadRules, findUnmatchedRules, RuleWatch } from "./unmatched-rules.ts";
export { explainAccess } from "./explain.ts";
export { withOpenedMethods } from "./opened-methods.ts";
export { compileRules } from "./rules.ts";
export { SeenCallers } from "./seen-callers.ts";
