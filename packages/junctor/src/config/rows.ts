import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "@junctor/core/json";
import { defined } from "@junctor/core/options";
import { createGlob } from "@junctor/server/internal";
import {
  type ConfigObject,
  type ConfigValue,
  type KeyHints,
  readAllowed,
  readAnyText,
  readChoice,
  readFitting,
  readFlag,
  readList,
  readNumber,
  readObject,
  readObjectOrEmpty,
  readPath,
  readText,
  refuse,
  refuseUnknownKeys,
  timeRange,
} from "./value-readers.ts";

export interface JsonSchema {
  readonly [keyword: string]: unknown;
}

/** How edits are treated, for settings that have this in common. */
export const atOnce = { consent: "free", effect: "live" } as const;
export const asked = { consent: "asks", effect: "live" } as const;
export const restarts = { consent: "asks", effect: "server" } as const;
export const atStart = { consent: "free", effect: "gateway" } as const;

/** A kind of value: how it is read, and how an editor checks and completes it. */
export interface Type<T> {
  readonly read: (given: ConfigValue) => T | undefined;
  readonly schema: JsonSchema;
  /** The value is never shown. */
  readonly isSecret?: true;
  /** Of an object: its settings. */
  readonly rows?: Rows;
  /** Of a list or of objects by name: the settings of each. */
  readonly each?: Rows;
}

/**
 * May an edit be used before a person agrees to it? `free`: yes. `asks`: no. A function gives the part of the edit that may: it takes
 * something away, and what it leaves out waits.
 */
export type Consent<T> = "free" | "asks" | { part(next: T, agreed: T): T }["part"];

/**
 * What it takes to use an edit. `live`: the code that runs reads it from then on. `next`: it counts from the next start of the server.
 * `server`: the server is started again. `gateway`: the gateway must be.
 */
export type Effect = "live" | "next" | "server" | "gateway";

/** What each setting declares. Types, parser, editor schema, documentation and the treatment of edits come from here. */
interface About {
  readonly effect: Effect;
  /** One sentence: a cell of docs/reference/config.md, and what an editor shows. */
  readonly doc: string;
  /** The default in words, where it is not `usual`. */
  readonly byDefault?: string;
  /** The version that brought it; the first when left out. */
  readonly since?: string;
  /** It belongs to one server, and not into `junctor.defaults`. */
  readonly isOwn?: true;
  /** What to write instead of it. */
  readonly deprecated?: string;
}

/** One setting. `always`: the parsed config has the member, possibly undefined; `maybe`: it may lack it. */
export interface Row<T, Presence extends "always" | "maybe" = "always" | "maybe"> extends About {
  readonly type: Type<T>;
  /** The value where the config says nothing. */
  readonly usual?: T;
  /** It must be given. */
  readonly isRequired?: true;
  readonly consent: Consent<T>;
  readonly presence?: Presence;
}

export interface Rows {
  readonly [key: string]: Row<unknown>;
}

/** What is read by rows: an object with a member for each. */
export type Of<R> = {
  readonly [K in keyof R as R[K] extends Row<unknown, "always"> ? K : never]: ValueOf<R[K]>;
} & {
  readonly [K in keyof R as R[K] extends Row<unknown, "always"> ? never : K]?: ValueOf<R[K]>;
};
type ValueOf<R> = R extends Row<infer T> ? T : never;

/** Declares a setting with a default. */
export function row<T>(
  about: About & {
    readonly type: Type<T>;
    readonly usual: undefined;
    readonly consent: Consent<T | undefined>;
  },
): Row<T | undefined, "always">;
export function row<T>(
  about: About & {
    readonly type: Type<T>;
    readonly usual: NoInfer<T>;
    readonly consent: Consent<NoInfer<T>>;
  },
): Row<T, "always">;
/** Declares a setting that is required. */
export function row<T>(
  about: About & { readonly type: Type<T>; readonly isRequired: true; readonly consent: Consent<NoInfer<T>> },
): Row<T, "always">;
/** Declares a setting that may be left out. */
export function row<T>(
  about: About & { readonly type: Type<T>; readonly consent: Consent<NoInfer<T> | undefined> },
): Row<T, "maybe">;
export function row(about: object): object {
  return about;
}

/** Reads an object by its rows. What it leaves out comes from `base`, or else from `usual`; what neither has is left out. */
export function readRows<R extends object>(rows: R, object: ConfigObject, base?: Of<R>): Of<R> {
  const read = Object.entries(rows as Rows).map(([key, { type, usual }]) => {
    const given = object.has(key) ? type.read(object.get(key)) : undefined;
    return [key, given ?? (base === undefined ? usual : (base as { [key: string]: unknown })[key])] as const;
  });
  return Object.fromEntries(
    read.filter(([key, value]) => value !== undefined || "usual" in ((rows as Rows)[key] ?? {})),
  ) as Of<R>;
}

/** The values of rows for an empty object. */
export function usualOf<R extends object>(rows: R): Of<R> {
  const settled = Object.entries(rows as Rows).filter(([, each]) => "usual" in each);
  return Object.fromEntries(settled.map(([key, { usual }]) => [key, usual])) as Of<R>;
}

/** A text in which variables are filled in, and null, which counts as left out. */
const textSchema = { type: ["string", "null"] };
const filled = { ...textSchema, pattern: "\\S" };
const orVariable = { ...textSchema, pattern: "\\$\\{" };

export const flag: Type<boolean> = { read: readFlag, schema: { type: ["boolean", "null"] } };

export function number(range: {
  readonly min: number;
  readonly max: number;
  readonly example: number;
}): Type<number> {
  const { min, max, example } = range;
  const whole = { type: "integer", minimum: min, maximum: max };
  return {
    read: (given) => readNumber(given, range),
    schema: { anyOf: [whole, orVariable], examples: [example] },
  };
}

/** A time in milliseconds. */
export const ms = (example: number): Type<number> => number(timeRange(example));

export function choice<const Choice extends string>(...choices: readonly Choice[]): Type<Choice> {
  return {
    read: (given) => readChoice(given, choices),
    schema: { anyOf: [{ enum: choices }, orVariable] },
  };
}

export function text(example: string): Type<string> {
  return { read: (given) => readText(given, example), schema: filled };
}

/** A text that may be empty. */
export function anyText(example: string): Type<string> {
  return { read: (given) => readAnyText(given, example), schema: textSchema };
}

/** A text that is never shown. */
export function secret(example: string): Type<string> {
  const read = (given: ConfigValue): string | undefined => {
    const value = readText(given, example);
    if (value !== undefined) given.findings.hide(value);
    return value;
  };
  return { read, schema: filled, isSecret: true };
}

/** A path, resolved against the folder of the config. */
export const path: Type<string> = { read: readPath, schema: filled };

/** A text that fits a pattern; `problem` is the message for any other. */
export function fitting(example: string, pattern: RegExp, problem: string): Type<string> {
  // A schema has no flags.
  const schema =
    pattern.flags === "" ? { anyOf: [{ type: "string", pattern: pattern.source }, orVariable] } : filled;
  return { read: (given) => readFitting(given, example, pattern, problem), schema };
}

/** A text or another value with a reader of its own. */
export function as<T>(read: Type<T>["read"], schema: JsonSchema = filled): Type<T> {
  return { read, schema };
}

export function list<Item>(item: Type<Item>, example: string): Type<readonly Item[]> {
  return {
    read: (given) => readList(given, example, item.read),
    schema: { type: ["array", "null"], items: item.schema },
    ...(item.rows && { each: item.rows }),
  };
}

export function texts(example: string): Type<readonly string[]> {
  return list(text(example), example);
}

/** Globs of which a name must fit one. */
export function allowed(example: string): Type<readonly string[]> {
  return {
    read: (given) => readAllowed(given, example),
    schema: { type: ["array", "null"], items: filled, minItems: 1 },
  };
}

interface ObjectOptions<R, T> {
  /** What may stand there. */
  readonly example: string;
  /** Two members that mean the same. */
  readonly rivals?: readonly [string, string];
  /** The message when a required member is missing. */
  readonly missing?: string;
  readonly hints?: KeyHints;
  /** Null counts as an empty object. */
  readonly orEmpty?: true;
  /** Checks settings that may contradict each other. Its result is the value. */
  readonly check?: (read: Of<R>, object: ConfigObject, isAllKnown: boolean) => T | undefined;
}

/** An object with the settings of these rows. */
export function object<R extends object, T = Of<R>>(
  rows: R,
  { example, rivals, missing, hints, orEmpty, check }: ObjectOptions<R, T>,
): Type<T> {
  const keys = Object.keys(rows);
  const needed = keys.filter((key) => (rows as Rows)[key]?.isRequired);
  const read = (given: ConfigValue): T | undefined => {
    const found = orEmpty ? readObjectOrEmpty(given, example) : readObject(given, example);
    if (found === undefined) return undefined;
    const isAllKnown = refuseUnknownKeys(found, keys, hints);
    if (rivals?.every((key) => found.has(key)))
      return refuse(given, `has both ${rivals.join(" and ")}: keep one of them`);
    const values = readRows(rows, found);
    // A misspelt key has been reported.
    if (isAllKnown && missing !== undefined && needed.some((key) => !found.has(key)))
      return refuse(given, missing);
    if (needed.some((key) => !(key in values))) return undefined;
    return check === undefined ? (values as unknown as T) : check(values, found, isAllKnown);
  };
  return { read, schema: toSchema(rows), rows: rows as Rows };
}

interface NamedOptions<T> {
  readonly example: string;
  readonly name?: { readonly pattern: RegExp; readonly problem: string };
  readonly check?: (items: readonly T[], given: ConfigValue) => void;
}

/** Objects by name, as a list in which each has its name. */
export function named<T extends object>(
  item: Type<T>,
  { example, name: rule, check }: NamedOptions<T & { readonly name: string }>,
): Type<readonly (T & { readonly name: string })[]> {
  const read = (given: ConfigValue): readonly (T & { readonly name: string })[] => {
    const items = (readObject(given, example)?.entries() ?? []).flatMap(([name, at]) => {
      if (rule !== undefined && !rule.pattern.test(name)) refuse(at, rule.problem);
      const value = item.read(at);
      return value === undefined ? [] : [{ name, ...value }];
    });
    check?.(items, given);
    return items;
  };
  const names = rule === undefined ? {} : { propertyNames: { pattern: rule.pattern.source } };
  return {
    read,
    schema: { type: ["object", "null"], additionalProperties: item.schema, ...names },
    ...(item.rows && { each: item.rows }),
  };
}

/** Values of one type by name. */
export function byName<T>(item: Type<T>, example: string): Type<{ readonly [name: string]: T }> {
  const read = (given: ConfigValue): { readonly [name: string]: T } | undefined => {
    const entries = readObject(given, example)
      ?.entries()
      .map(([name, at]) => [name, item.read(at)] as const);
    return entries && defined(Object.fromEntries(entries));
  };
  return {
    read,
    schema: { type: ["object", "null"], additionalProperties: item.schema },
    ...(item.rows && { each: item.rows }),
  };
}

/** A shorter way to write the same: a value that `isShort` is read by the first type, any other by the second. */
export function either<S, T>(
  isShort: (value: unknown) => boolean,
  short: Type<S>,
  long: Type<T>,
): Type<S | T> {
  return {
    read: (given) => (isShort(given.value) ? short.read(given) : long.read(given)),
    schema: { anyOf: [short.schema, long.schema] },
    ...(long.rows && { rows: long.rows }),
  };
}

export const isText = (value: unknown): boolean => typeof value === "string";
export const isFlag = (value: unknown): boolean => typeof value === "boolean";

/** Reads a value by its type, and converts it. */
export function converted<S, T>(
  type: Type<S>,
  convert: (value: S, given: ConfigValue) => T | undefined,
): Type<T> {
  const read = (given: ConfigValue): T | undefined => {
    const value = type.read(given);
    return value === undefined ? undefined : convert(value, given);
  };
  return { ...type, read };
}

/** The schema of an object of ours: every unknown key is a mistake. */
export function toSchema(rows: object): JsonSchema {
  const entries = Object.entries(rows as Rows);
  const needed = entries.filter(([, { isRequired }]) => isRequired).map(([key]) => key);
  return {
    type: ["object", "null"],
    properties: Object.fromEntries(entries.map(([key, each]) => [key, schemaOf(each)])),
    additionalProperties: false,
    ...(needed.length === 0 ? {} : { required: needed }),
  };
}

export function schemaOf({ type, doc, usual, deprecated }: Row<unknown>): JsonSchema {
  const shown = usual === undefined || type.isSecret ? {} : { default: usual };
  const old = deprecated === undefined ? {} : { deprecated: true, deprecationMessage: deprecated };
  return { description: toPlain(doc), markdownDescription: toHover(doc), ...type.schema, ...shown, ...old };
}

/** Links of the page lead nowhere in an editor. */
function toHover(doc: string): string {
  return doc.replaceAll(/\[([^\]]+)\]\([^)]*\)/g, "$1");
}

function toPlain(doc: string): string {
  return toHover(doc).replaceAll("`", "");
}

/** The part of an edit that may be used before a person agrees to the rest, and the settings that wait. */
interface Narrowed<T> {
  readonly value: T;
  readonly waiting: readonly string[];
}

/** Asks each row which part of the edit may be used. */
export function narrowRows<T extends object>(rows: Rows, next: T, agreed: T): Narrowed<T> {
  const [now, before] = [next, agreed] as readonly JsonObject[];
  const value: { [key: string]: unknown } = { ...now };
  const waiting: string[] = [];
  for (const [key, { consent }] of Object.entries(rows)) {
    if (consent === "free" || !(now !== undefined && before !== undefined && (key in now || key in before)))
      continue;
    const [one, other] = [now[key], before[key]];
    if (isDeepStrictEqual(one, other)) continue;
    const part = consent === "asks" ? other : consent(one, other);
    if (part === undefined && !(key in before)) delete value[key];
    else value[key] = part;
    if (!isDeepStrictEqual(part, one)) waiting.push(key);
  }
  return { value: value as T, waiting };
}

/** Both lists are of globs; an empty one allows everything. */
export function narrowAllow(next: readonly string[], agreed: readonly string[]): readonly string[] {
  if (agreed.length === 0) return next;
  const kept = next.filter((glob) => isCovered(glob, agreed));
  return kept.length === 0 ? agreed : kept;
}

export function narrowDeny(next: readonly string[], agreed: readonly string[]): readonly string[] {
  return [...next, ...agreed.filter((glob) => !isCovered(glob, next))];
}

/** Whether every name that fits a glob fits one of the others. A glob without `?` fits the text of each narrower glob. */
function isCovered(glob: string, others: readonly string[]): boolean {
  return others.some((other) => other === glob || (!other.includes("?") && createGlob(other)(glob)));
}

/** Lists of names of which undefined means all. */
export function narrowNames<Names extends readonly string[] | undefined>(
  next: Names,
  agreed: Names,
): Names | readonly string[] {
  if (agreed === undefined) return next;
  return next?.filter((name) => agreed.includes(name)) ?? agreed;
}

/** What may be switched on only by a person. */
export const narrowOn = (next: boolean, agreed: boolean): boolean => next && agreed;
