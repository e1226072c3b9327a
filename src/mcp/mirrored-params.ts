type SchemaNode = { readonly [keyword: string]: unknown };

/** An argument that a modern HTTP client repeats in the header `Mcp-Param-{header}`. */
export interface MirroredParam {
  readonly header: string;
  /** The way to it through the arguments' properties. */
  readonly path: readonly string[];
}

const found = new WeakMap<object, readonly MirroredParam[]>();

/** The arguments a schema marks with `x-mcp-header`, wherever they can be reached through `properties` alone. */
export function mirroredParams(schema: SchemaNode): readonly MirroredParam[] {
  let params = found.get(schema);
  if (params === undefined) found.set(schema, (params = collect(schema, [])));
  return params;
}

function collect(schema: SchemaNode, path: readonly string[]): readonly MirroredParam[] {
  const { properties } = schema;
  if (!isNode(properties)) return [];
  return Object.entries(properties).flatMap(([key, property]) => {
    if (!isNode(property)) return [];
    const own = [...path, key];
    const header = property["x-mcp-header"];
    return [...(typeof header === "string" ? [{ header, path: own }] : []), ...collect(property, own)];
  });
}

function isNode(value: unknown): value is SchemaNode {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
