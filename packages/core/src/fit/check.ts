import { describeValue } from "../schema/index.ts";

/** What was changed at one place of a definition, and why. */
export interface Note {
  /** The way to it, such as `annotations.readOnlyHint`. */
  readonly path: string;
  readonly text: string;
}

/** What a value becomes because clients would refuse it. */
export interface Mending {
  /** The value it gets; undefined when it is removed. */
  readonly instead: unknown;
  readonly notes: readonly Note[];
}

/** Looks at one value of a definition; undefined when it can stay as it is. */
export type Check = (value: unknown) => Mending | undefined;

export type Checks = { readonly [member: string]: Check };

export type Fields = { readonly [member: string]: unknown };

/** The value is removed. */
export function removed(value: unknown, expected: string): Mending {
  return {
    instead: undefined,
    notes: [{ path: "", text: `removed: ${describeValue(value)} is ${expected}` }],
  };
}

/** The value is replaced by another that says the same. */
export function replaced(instead: unknown, text: string): Mending {
  return { instead, notes: [{ path: "", text }] };
}

/** "missing", or the kind that the value has in place of the expected one. */
export function describeWrong(value: unknown, expected: string): string {
  return value === undefined ? "missing" : `${describeValue(value)}, not ${expected}`;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const string: Check = (value) =>
  typeof value === "string" ? undefined : removed(value, "not a string");

export const boolean: Check = (value) =>
  typeof value === "boolean" ? undefined : removed(value, "not a boolean");

export const object: Check = (value) => (isFields(value) ? undefined : removed(value, "not an object"));

export function oneOf(...values: readonly string[]): Check {
  return (value) =>
    values.some((each) => each === value) ? undefined : removed(value, `not one of ${values.join(", ")}`);
}

/** An object that must have some members, strings, and whose other members are mended one by one. */
export function objectOf(checks: Checks, ...required: readonly string[]): Check {
  return (value) => {
    if (!isFields(value)) return removed(value, "not an object");
    const missing = required.find((member) => typeof value[member] !== "string");
    if (missing !== undefined)
      return {
        instead: undefined,
        notes: [
          { path: "", text: `removed: its ${missing} is ${describeWrong(value[missing], "a string")}` },
        ],
      };
    const { changes, notes } = checkMembers(value, checks);
    return notes.length === 0 ? undefined : { instead: withChanges(value, changes), notes };
  };
}

/** An array whose entries are mended one by one; those that cannot be are taken out. */
export function arrayOf(check: Check): Check {
  return (value) => {
    if (!Array.isArray(value)) return removed(value, "not an array");
    const notes: Note[] = [];
    const kept = value.flatMap((entry: unknown, index) => {
      const mending = check(entry);
      if (mending === undefined) return [entry];
      notes.push(...within(`[${index}]`, mending));
      return mending.instead === undefined ? [] : [mending.instead];
    });
    return notes.length === 0 ? undefined : { instead: kept, notes };
  };
}

/** What has to change in an object: new values of members, undefined for those that are removed. */
export function checkMembers(
  fields: Fields,
  checks: Checks,
): { readonly changes: Fields; readonly notes: readonly Note[] } {
  const changes: [string, unknown][] = [];
  const notes: Note[] = [];
  for (const [member, check] of Object.entries(checks)) {
    if (!Object.hasOwn(fields, member)) continue;
    const mending = check(fields[member]);
    if (mending === undefined) continue;
    changes.push([member, mending.instead]);
    notes.push(...within(member, mending));
  }
  return { changes: Object.fromEntries(changes), notes };
}

/** The object with other members; `fromEntries` defines them, so that `__proto__` is a member like any other. */
export function withChanges(fields: Fields, changes: Fields): Fields {
  const merged = Object.entries({ ...fields, ...changes });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

function within(place: string, { notes }: Mending): readonly Note[] {
  return notes.map(({ path, text }) => {
    const isDotted = path !== "" && !path.startsWith("[");
    return { path: `${place}${isDotted ? "." : ""}${path}`, text };
  });
}
