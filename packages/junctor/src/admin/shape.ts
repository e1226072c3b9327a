// Descriptions of JSON that the compiler holds to the types they describe.

/** A JSON Schema, in the dialect of OpenAPI 3.1. */
export interface ApiSchema {
  readonly [keyword: string]: unknown;
}

/** What can be done with a shape of any type. */
export interface AnyShape {
  readonly schema: ApiSchema;
  /** The schemas that this one refers to, by name. */
  readonly definitions: { readonly [name: string]: ApiSchema };
}

/** The description of a value of type `T`. */
export interface Shape<T> extends AnyShape {
  /** Never set: it makes shapes of different types differ. */
  readonly "~type"?: (value: T) => T;
}

/** A member that may be missing. */
interface Maybe<T> {
  readonly maybe: Shape<T>;
}

/** A shape for each member of `T`. A missing one, a wrong type and a missing {@link maybe} do not compile. */
type MemberShapes<T> = {
  readonly [Key in keyof T]-?: {} extends Pick<T, Key> ? Maybe<Exclude<T[Key], undefined>> : Shape<T[Key]>;
};

type AnyMemberShapes = { readonly [name: string]: AnyShape | { readonly maybe: AnyShape } };

export function text(doc: string): Shape<string> {
  return toShape({ type: "string", description: doc });
}

/** One of these words; `usual` is the default in a query. */
export function word<const Word extends string>(
  doc: string,
  words: readonly Word[],
  usual?: NoInfer<Word>,
): Shape<Word> {
  return toShape({
    type: "string",
    description: doc,
    enum: words,
    ...(usual !== undefined && { default: usual }),
  });
}

export function flag(doc: string): Shape<boolean> {
  return toShape({ type: "boolean", description: doc });
}

/** A whole number that is not negative; `default` is for a query without it. */
export function count(
  doc: string,
  range: { readonly maximum?: number; readonly default?: number } = {},
): Shape<number> {
  return toShape({ type: "integer", description: doc, minimum: 0, ...range });
}

export function number(doc: string): Shape<number> {
  return toShape({ type: "number", description: doc });
}

export function numberOrNull(doc: string): Shape<number | null> {
  return toShape({ type: ["number", "null"], description: doc });
}

/** JSON of any kind. */
export function anything(doc: string): Shape<unknown> {
  return toShape({ description: doc });
}

export function maybe<T>(shape: Shape<T>): Maybe<T> {
  return { maybe: shape };
}

export function list<T>(doc: string, item: Shape<T>): Shape<readonly T[]> {
  return { schema: { type: "array", description: doc, items: item.schema }, definitions: item.definitions };
}

/** An object whose members all have one shape. */
export function record<T>(doc: string, value: Shape<T>): Shape<{ readonly [name: string]: T }> {
  const schema = { type: "object", description: doc, additionalProperties: value.schema };
  return { schema, definitions: value.definitions };
}

/** A value of one shape or the other. */
export function either<A, B>(doc: string, one: Shape<A>, other: Shape<B>): Shape<A | B> {
  const definitions = { ...one.definitions, ...other.definitions };
  return { schema: { description: doc, anyOf: [one.schema, other.schema] }, definitions };
}

export function object<T extends object>(doc: string, members: MemberShapes<NoInfer<T>>): Shape<T> {
  const entries = Object.entries(members as AnyMemberShapes);
  const required = entries.filter(([, member]) => !("maybe" in member)).map(([name]) => name);
  const shapes = entries.map(([name, member]) => [name, "maybe" in member ? member.maybe : member] as const);
  const properties = Object.fromEntries(shapes.map(([name, { schema }]) => [name, schema]));
  const definitions = Object.assign(
    {},
    ...shapes.map(([, shape]) => shape.definitions),
  ) as AnyShape["definitions"];
  return { schema: { type: "object", description: doc, properties, required }, definitions };
}

/** An object that has a name, under which others refer to it. */
export function named<T extends object>(
  name: string,
  doc: string,
  members: MemberShapes<NoInfer<T>>,
): Shape<T> {
  const { schema, definitions } = object<T>(doc, members);
  return {
    schema: { $ref: `#/components/schemas/${name}` },
    definitions: { ...definitions, [name]: schema },
  };
}

/** The same shape with a description of its own. */
export function as<T>(doc: string, shape: Shape<T>): Shape<T> {
  return { ...shape, schema: { ...shape.schema, description: doc } };
}

function toShape<T>(schema: ApiSchema): Shape<T> {
  return { schema, definitions: {} };
}
