export { defined } from "./defined.ts";
export { assertKnownKeys, keys, type KeysOf } from "./known-keys.ts";
export { nearest, suggest } from "./nearest.ts";
export { packageVersion } from "./version.ts";
