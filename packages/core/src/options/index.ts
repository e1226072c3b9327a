export { defined, assertKnownKeys, keys, type KeysOf, nearest, suggest } from "./known-keys.ts";
export { packageVersion } from "./version.ts";
