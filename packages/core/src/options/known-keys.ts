import { nearest } from "./nearest.ts";

/**
 * Every key of an options type. The compiler refuses a list that misses one.
 *
 * @example
 * const optionKeys: KeysOf<ServeOptions> = keys("graceMs lingerMs");
 */
export type KeysOf<Options> = { readonly [Key in keyof Required<Options>]: true };

type WordsOf<Text extends string> = Text extends `${infer First} ${infer Rest}`
  ? First | WordsOf<Rest>
  : Text;

/** Keys, written with one space between them. */
export function keys<const Text extends string>(text: Text): { readonly [Key in WordsOf<Text>]: true } {
  const entries = text.split(" ").map((key) => [key, true]);
  return Object.fromEntries(entries) as { [Key in WordsOf<Text>]: true };
}

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
