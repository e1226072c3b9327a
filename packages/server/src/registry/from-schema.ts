/** The type of the values that a JSON Schema allows, as far as its literal says; otherwise `unknown`. */
export type FromSchema<Schema> = Schema extends { readonly const: infer Value }
  ? Value
  : Schema extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Schema extends { readonly anyOf: readonly (infer One)[] } | { readonly oneOf: readonly (infer One)[] }
      ? FromSchema<One>
      : Schema extends { readonly type: infer Type }
        ? OfType<Type, Schema>
        : unknown;

/** `type` may be a list of types. */
type OfType<Type, Schema> = Type extends readonly (infer One)[]
  ? OfType<One, Schema>
  : Type extends "string"
    ? string
    : Type extends "number" | "integer"
      ? number
      : Type extends "boolean"
        ? boolean
        : Type extends "null"
          ? null
          : Type extends "array"
            ? Schema extends { readonly items: infer Item }
              ? FromSchema<Item>[]
              : unknown[]
            : Type extends "object"
              ? ObjectOf<Schema>
              : unknown;

type ObjectOf<Schema> = Schema extends { readonly properties: infer Properties }
  ? Flat<
      {
        [Name in keyof Properties as Name extends RequiredOf<Schema> ? Name : never]: FromSchema<
          Properties[Name]
        >;
      } & {
        [Name in keyof Properties as Name extends RequiredOf<Schema> ? never : Name]?: FromSchema<
          Properties[Name]
        >;
      }
    >
  : Record<string, unknown>;

type RequiredOf<Schema> = Schema extends { readonly required: readonly (infer Name)[] } ? Name : never;

/** One object type in place of an intersection, so that editors and errors show its members. */
type Flat<Type> = { [Name in keyof Type]: Type[Name] };
