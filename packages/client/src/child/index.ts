export { type ChildCommand, describeCommand, startChild, toChildEnv, spawnChild, killTree } from "./child.ts";
export { createGuardian, type Guardian, guardVariable } from "./guardian.ts";
