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

const minMaxLength = 32;
const suffixLength = 8;

/**
 * Throws unless names in each of these namespaces can be told from those of every other: the first separator in a
 * qualified name must be the one after its namespace, and no two namespaces may be spelled the same there.
 */
export function assertNamespaces(namespaces: readonly string[], naming: Naming): void {
  const { maxLength } = naming;
  if (maxLength < minMaxLength)
    throw new TypeError(`maxLength must be at least ${minMaxLength}, or namespaces would be cut off`);
  const byPrefix = new Map<string, string>();
  for (const namespace of namespaces) {
    assertNamespace(namespace, naming);
    const prefix = prefixOf(namespace, naming);
    const other = byPrefix.get(prefix);
    if (other !== undefined) {
      const both = `${JSON.stringify(other)} and ${JSON.stringify(namespace)}`;
      throw new TypeError(`The namespaces ${both} give the same names: rename one of them`);
    }
    byPrefix.set(prefix, namespace);
  }
}

function assertNamespace(namespace: string, naming: Naming): void {
  const { separator, maxLength } = naming;
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(namespace) || namespace.length > maxLength / 2) {
    const rule = `use up to ${maxLength / 2} of the characters A-Z a-z 0-9 _ . - and start with a letter or digit`;
    throw new TypeError(`${JSON.stringify(namespace)} cannot be a namespace: ${rule}`);
  }
  if (prefixOf(namespace, naming).indexOf(separator) !== namespace.length) {
    throw new TypeError(
      `The namespace ${JSON.stringify(namespace)} is ambiguous with the separator ${JSON.stringify(separator)}: ` +
        "rename it, or choose another separator",
    );
  }
}

/** What every qualified name of a namespace begins with, and no name of another. */
export function prefixOf(namespace: string, { separator }: Naming): string {
  return toSafe(`${namespace}${separator}`, separator);
}

/**
 * The name of a provider's thing among those of all providers. It depends on its own namespace and name only, so it
 * does not change when another provider comes or goes.
 */
export function qualify(namespace: string, name: string, { separator, maxLength }: Naming): string {
  const full = `${namespace}${separator}${name}`;
  return toFit(full, toSafe(full, separator), maxLength);
}

/**
 * A name without a namespace: as its provider has it, with all characters that the protocol allows, unless
 * clients do not accept it. They, or their model, would refuse the whole list because of it.
 */
export function unqualified(name: string, { maxLength }: Naming): string {
  return toFit(name, name === "" ? "_" : toSafe(name, "."), maxLength);
}

/**
 * A name in the characters that names of groups may have. That of a member's group
 * follows the name of the member.
 */
export function toGroupName(...names: readonly string[]): string {
  const full = names.join("-");
  const safe = full
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return toFit(full, safe, 64, "-");
}

function toFit(full: string, safe: string, maxLength: number, joint = "_"): string {
  if (safe === full && full.length <= maxLength) return full;
  const suffix = process
    .getBuiltinModule("node:crypto")
    .createHash("sha256")
    .update(full)
    .digest("hex")
    .slice(0, suffixLength);
  return `${safe.slice(0, maxLength - suffixLength - 1)}${joint}${suffix}`;
}

/**
 * The text in the characters that every model API takes or, with a separator that is not one of them, in
 * those of the protocol.
 */
function toSafe(text: string, separator: Separator): string {
  const isForModels = separator === "__" || separator === "_" || separator === "-";
  return text.replaceAll(isForModels ? /[^A-Za-z0-9_-]/g : /[^A-Za-z0-9_./-]/g, "_");
}
