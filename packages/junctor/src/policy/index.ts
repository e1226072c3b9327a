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
export { findDeadRules } from "./dead-rules.ts";
export { explainAccess } from "./explain.ts";
export { withOpenedMethods } from "./opened-methods.ts";
export { RuleWatch } from "./rule-watch.ts";
export { compileRules } from "./rules.ts";
export { SeenCallers } from "./seen-callers.ts";
export { findUnmatchedRules } from "./unmatched-rules.ts";
