/** What zod converts a schema to, and the parts of a schema that tell whether it coerces. Only what is used here. */
interface Conversion {
  readonly zodSchema: {
    readonly _zod?: { readonly def?: { readonly type?: string; readonly coerce?: boolean } };
  };
  readonly jsonSchema: { type?: unknown };
}

/**
 * The JSON types that `z.coerce` takes beside its own. zod lists its own alone, so that callers who heed the list could
 * not send what the tool takes. `null` and arrays are left out: that they become 0 or "" is not what callers mean.
 */
const takenBeside: { readonly [type: string]: readonly string[] } = {
  number: ["string"],
  string: ["number", "boolean"],
  boolean: ["string", "number"],
};

/** Those without a JSON type of their own, which zod refuses to list. */
const takenInstead: { readonly [type: string]: readonly string[] } = {
  bigint: ["integer", "string"],
  date: ["string", "number"],
};

/**
 * Converts the input side of a zod schema such that coerced parts list every type they take. `convert` runs zod's own
 * conversion with the given options; it throws for what has no JSON Schema.
 */
export function convertCoercing<Json>(convert: (libraryOptions: Record<string, unknown>) => Json): Json {
  const override = ({ zodSchema, jsonSchema }: Conversion): void => {
    const beside = takenBeside[coercedType(zodSchema) ?? ""];
    if (beside !== undefined && typeof jsonSchema.type === "string")
      jsonSchema.type = [jsonSchema.type, ...beside];
  };
  try {
    return convert({ override });
  } catch (error) {
    // Versions of zod that know no function here would list every such part as anything: then the error stands.
    let isAsked = false;
    const unrepresentable = ({ zodSchema }: Pick<Conversion, "zodSchema">): object | "throw" => {
      isAsked = true;
      const type = takenInstead[coercedType(zodSchema) ?? ""];
      return type === undefined ? "throw" : { type };
    };
    const json = convert({ override, unrepresentable });
    if (!isAsked) throw error;
    return json;
  }
}

function coercedType({ _zod }: Conversion["zodSchema"]): string | undefined {
  return _zod?.def?.coerce === true ? _zod.def.type : undefined;
}
