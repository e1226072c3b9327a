import { nearest } from "./nearest.ts";

/**
 * Every key of an options type, written once as an object so that the compiler misses none.
 *
 * @example
 * const keys: KeysOf<ServeOptions> = { graceMs: true, lingerMs: true };
 */
export type KeysOf<Options> = { readonly [Key in keyof Required<Options>]: true };

/**
 * Throws a `TypeError` for a key that the options do not have, which is most often a misspelt one. `what` names the
 * function, and `meant` says what to write for keys that people bring from elsewhere.
 *
 * @example
 * assertKnownKeys("createServer", options, serverOptionKeys);
 * // TypeError: createServer has no option "pagesize"; did you mean "pageSize"?
 */
export function assertKnownKeys(
  what: string,
  options: object,
  known: { readonly [key: string]: true },
  meant: { readonly [key: string]: string } = {},
): void {
  if (typeof options !== "object" || options === null)
    throw new TypeError(`${what}: the options must be an object, but are ${String(options)}`);
  const unknown = Object.keys(options).find((key) => !Object.hasOwn(known, key));
  if (unknown === undefined) return;
  const keys = Object.keys(known);
  const likely = Object.hasOwn(meant, unknown) ? meant[unknown] : nearest(unknown, keys);
  const hint =
    likely === undefined
      ? `; its options are ${keys.join(", ")}`
      : `; did you mean ${JSON.stringify(likely)}?`;
  throw new TypeError(`${what} has no option ${JSON.stringify(unknown)}${hint}`);
}
