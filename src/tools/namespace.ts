import { createHash } from "node:crypto";

/** What may stand between a namespace and a name. Only the first three are accepted by every model API. */
export type Separator = "__" | "_" | "-" | "." | "/";

/** How names of several providers are kept apart. */
export interface Naming {
  readonly separator: Separator;
  /** Longer names are cut and get a suffix made from the whole name. */
  readonly maxLength: number;
}

/** Valid for every model API we know: `[A-Za-z0-9_-]`, at most 64 characters. */
export const defaultNaming: Naming = { separator: "__", maxLength: 64 };

/**
 * Throws unless names in this namespace can be told from those of any other: the first separator in a qualified name
 * must be the one after the namespace.
 */
export function assertNamespace(namespace: string, { separator, maxLength }: Naming): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(namespace) || namespace.length > maxLength / 2) {
    const rule = `use up to ${maxLength / 2} of the characters A-Z a-z 0-9 _ . - and start with a letter or digit`;
    throw new TypeError(`${JSON.stringify(namespace)} cannot be a namespace: ${rule}`);
  }
  if ((namespace + separator).indexOf(separator) !== namespace.length) {
    throw new TypeError(
      `The namespace ${JSON.stringify(namespace)} is ambiguous with the separator ${JSON.stringify(separator)}: ` +
        "rename it, or choose another separator",
    );
  }
}

/**
 * The name of a provider's thing among those of all providers. It depends on its own namespace and name only, so it
 * does not change when another provider comes or goes.
 */
export function qualify(namespace: string, name: string, { separator, maxLength }: Naming): string {
  const full = `${namespace}${separator}${name}`;
  const isForModels = separator === "__" || separator === "_" || separator === "-";
  const safe = isForModels ? full.replaceAll(/[^A-Za-z0-9_-]/g, "_") : full;
  if (safe === full && full.length <= maxLength) return full;
  const suffix = createHash("sha256").update(full).digest("hex").slice(0, 8);
  return `${safe.slice(0, maxLength - suffix.length - 1)}_${suffix}`;
}
