import type { Findings } from "./findings.ts";

/** A value inside a config, and where it stands. */
export interface ConfigValue {
  readonly value: unknown;
  readonly path: string;
  readonly findings: Findings;
}

/** An object inside a config. */
export interface ConfigObject {
  readonly path: string;
  readonly findings: Findings;
  entries(): readonly (readonly [key: string, value: ConfigValue])[];
  /** Whether there is something else than null. */
  has(key: string): boolean;
  get(key: string): ConfigValue;
}

/** The value as an object. Anything else is no object here, arrays included. */
export function toObject({ value, path, findings }: ConfigValue): ConfigObject | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const fields = value as { readonly [key: string]: unknown };
  // Only what was written: a server may be called `constructor`.
  const read = (key: string): unknown => (Object.hasOwn(fields, key) ? fields[key] : undefined);
  const get = (key: string): ConfigValue => ({ value: read(key), path: joinPath(path, key), findings });
  return {
    path,
    findings,
    entries: () => Object.keys(fields).map((key) => [key, get(key)] as const),
    has: (key) => read(key) !== undefined && read(key) !== null,
    get,
  };
}

/** `mcpServers` and `github` give `mcpServers.github`, `args` and `0` give `args[0]`. */
export function joinPath(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[\w$@-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

/** Reports a mistake. Gives undefined, as readers do for a wrong value. */
export function refuse({ path, findings }: Omit<ConfigValue, "value">, message: string): undefined {
  findings.issue(path, message);
}

/** Reports a setting that is odd and not wrong. */
export function warn({ path, findings }: Omit<ConfigValue, "value">, message: string): void {
  findings.warn(path, message);
}
