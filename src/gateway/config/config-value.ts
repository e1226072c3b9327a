import type { Reading } from "./findings.ts";

/** A value inside a config, and where it stands. */
export interface Part {
  readonly value: unknown;
  readonly path: string;
  readonly reading: Reading;
}

/** An object inside a config. */
export interface Group {
  readonly path: string;
  readonly reading: Reading;
  readonly keys: readonly string[];
  entries(): readonly (readonly [key: string, part: Part])[];
  /** Whether there is something else than null. */
  has(key: string): boolean;
  get(key: string): Part;
}

/** The part as an object. Anything else is no object here, arrays included. */
export function toGroup({ value, path, reading }: Part): Group | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  return createGroup(value as { readonly [key: string]: unknown }, path, reading);
}

/** An object with nothing in it, for a part that is absent. */
export function emptyGroup({ path, reading }: Part): Group {
  return createGroup({}, path, reading);
}

/** `mcpServers` and `github` give `mcpServers.github`, `args` and `0` give `args[0]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[\w$@-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

function createGroup(fields: { readonly [key: string]: unknown }, path: string, reading: Reading): Group {
  // Only what was written: a server may be called `constructor`.
  const read = (key: string): unknown => (Object.hasOwn(fields, key) ? fields[key] : undefined);
  const keys = Object.keys(fields);
  const get = (key: string): Part => ({ value: read(key), path: joinPath(path, key), reading });
  return {
    path,
    reading,
    keys,
    entries: () => keys.map((key) => [key, get(key)] as const),
    has: (key) => read(key) !== undefined && read(key) !== null,
    get,
  };
}
