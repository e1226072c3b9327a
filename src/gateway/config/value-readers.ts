import { nearest } from "../../errors/nearest.ts";
import { emptyGroup, type Group, joinPath, type Part, toGroup } from "./config-value.ts";

// Each of these gives undefined for what is absent (null is), and for what is wrong, which has been reported then. So a
// mistake is one issue, and the rest of the config is still looked at.

/** An object; `example` is one that may stand there. */
export function readGroup(part: Part, example: string): Group | undefined {
  const group = toGroup(part);
  if (group === undefined) refuseKind(part, "an object", example);
  return group;
}

/** An object, empty when there is none. */
export function readGroupOrEmpty(part: Part, example: string): Group {
  return readGroup(part, example) ?? emptyGroup(part);
}

/** A text with its variables filled in, possibly empty. */
export function readAnyText(part: Part, example: string): string | undefined {
  const { value, path, reading } = part;
  if (typeof value === "string") return reading.expand(value, path);
  refuseKind(part, "a string", example);
  return undefined;
}

/** A text that must not be empty. */
export function readText(part: Part, example: string): string | undefined {
  const text = readAnyText(part, example);
  if (text?.trim() !== "") return text;
  part.reading.issue(part.path, `is empty: write ${example}`);
  return undefined;
}

/** A list. Items that are wrong are left out. */
export function readList<Item>(
  part: Part,
  example: string,
  readItem: (part: Part) => Item | undefined,
): readonly Item[] {
  const { value, path, reading } = part;
  if (!Array.isArray(value)) {
    refuseKind(part, "an array of strings", example);
    return [];
  }
  return value
    .map((item: unknown, index) => {
      const at = { value: item, path: joinPath(path, index), reading };
      if (item === null || item === undefined) reading.issue(at.path, `must be a string: write ${example}`);
      return readItem(at);
    })
    .filter((item) => item !== undefined);
}

/** A list of texts, none of them empty. */
export function readTexts(part: Part, example: string): readonly string[] {
  return readList(part, example, (item) => readText(item, example));
}

/** A list of globs of which a name must fit one. Written empty, it is read by some as nothing and by others as all. */
export function readAllowed(part: Part, example: string): readonly string[] {
  if (Array.isArray(part.value) && part.value.length === 0)
    part.reading.issue(
      part.path,
      'is empty: leave it out to allow all, or write "deny": ["*"] to allow nothing',
    );
  return readTexts(part, example);
}

export function readFlag(part: Part): boolean | undefined {
  if (typeof part.value === "boolean") return part.value;
  refuseKind(part, "true or false", "true");
  return undefined;
}

export interface Range {
  readonly min: number;
  readonly max: number;
  readonly example: number;
}

/** Times in milliseconds. More than this makes Node's timers fire at once. */
export const timeRange = (example: number): Range => ({ min: 1, max: 2 ** 31 - 1, example });

/** A whole number, or a variable that holds one. */
export function readNumber(part: Part, { min, max, example }: Range): number | undefined {
  const { path, reading } = part;
  let { value } = part;
  if (typeof value === "string" && value.includes("${")) {
    const text = reading.expand(value, path);
    if (text === undefined) return undefined;
    value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
  if (typeof value !== "number") {
    refuseKind(part, "a number", String(example));
    return undefined;
  }
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  reading.issue(path, `must be a whole number from ${min} to ${max}: write ${example}`);
  return undefined;
}

/** One of a few words. */
export function readChoice<Choice extends string>(
  part: Part,
  choices: readonly Choice[],
): Choice | undefined {
  const list = choices.map((choice) => JSON.stringify(choice)).join(", ");
  const text = readAnyText(part, JSON.stringify(choices[0]));
  if (text === undefined) return undefined;
  const choice = choices.find((candidate) => candidate === text);
  if (choice !== undefined) return choice;
  const near = nearest(text, choices);
  const hint = near === undefined ? "" : `: did you mean ${JSON.stringify(near)}?`;
  part.reading.issue(part.path, `must be one of ${list}${hint}`);
  return undefined;
}

/** Names what a value is by its kind alone: the value itself may be a secret. */
function refuseKind({ value, path, reading }: Part, wanted: string, example: string): void {
  if (value === undefined || value === null) return;
  const kind = Array.isArray(value)
    ? "an array"
    : typeof value === "object"
      ? "an object"
      : `a ${typeof value}`;
  reading.issue(path, `must be ${wanted}, not ${kind}: write ${example}`);
}
