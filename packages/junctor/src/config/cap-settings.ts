import { type ConfigValue, toObject } from "./config-value.ts";
import { readNumber } from "./value-readers.ts";

/** One cap for all tools, or caps by glob. Below the least, a notice alone would be longer. */
export function readCaps(given: ConfigValue): number | { readonly [glob: string]: number } | undefined {
  const range = { min: 500, max: 10_000_000, example: 10_000 };
  const object = toObject(given);
  if (object === undefined) return readNumber(given, range);
  const caps = object.entries().flatMap(([glob, at]) => {
    const cap = readNumber(at, range);
    return cap === undefined ? [] : [[glob, cap] as const];
  });
  return Object.fromEntries(caps);
}
