export { type ChildCommand, describeCommand, startChild } from "./child-command.ts";
export { toChildEnv } from "./child-env.ts";
export { spawnChild } from "./child.ts";
export { createGuardian, type Guardian, guardVariable } from "./guardian.ts";
export { killTree } from "./process-tree.ts";
