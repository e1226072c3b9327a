type SchemaNode = { readonly [keyword: string]: unknown };

/** An argument that a modern HTTP client repeats in the header `Mcp-Param-{header}`. */
export interface MirroredParam {
  readonly header: string;
  /** The way to it through the arguments' properties. */
  readonly path: readonly string[];
}

const keyword = "x-mcp-header";
const found = new WeakMap<object, readonly MirroredParam[]>();

/** The arguments a schema marks with `x-mcp-header`, wherever they can be reached through `properties` alone. */
export function mirroredParams(schema: SchemaNode): readonly MirroredParam[] {
  let params = found.get(schema);
  if (params === undefined) found.set(schema, (params = collect(schema, [])));
  return params;
}

function collect(schema: SchemaNode, path: readonly string[]): readonly MirroredParam[] {
  return propertiesOf(schema).flatMap(([key, property]) => {
    const own = [...path, key];
    const header = property[keyword];
    return [...(typeof header === "string" ? [{ header, path: own }] : []), ...collect(property, own)];
  });
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const mirrorable = new Set<unknown>(["string", "integer", "boolean"]);

/** What is wrong with a schema's use of `x-mcp-header`; undefined when nothing is. One fault spoils the whole tool. */
export function mirroringFault(schema: SchemaNode): string | undefined {
  const names = new Set<string>();
  let allowed = 0;
  const visit = (node: SchemaNode): string | undefined => {
    for (const [key, property] of propertiesOf(node)) {
      if (keyword in property) {
        allowed++;
        const fault = faultOf(property, names);
        if (fault !== undefined) return `${keyword} of ${JSON.stringify(key)} ${fault}`;
      }
      const deeper = visit(property);
      if (deeper !== undefined) return deeper;
    }
    return undefined;
  };
  const fault = visit(schema);
  if (fault !== undefined) return fault;
  return count(schema, true) === allowed
    ? undefined
    : `${keyword} stands where no argument can be mirrored from`;
}

function faultOf(property: SchemaNode, names: Set<string>): string | undefined {
  const header = property[keyword];
  if (typeof header !== "string" || !token.test(header)) return "is no header name";
  if (names.has(header.toLowerCase())) return "is used twice";
  names.add(header.toLowerCase());
  return mirrorable.has(property["type"])
    ? undefined
    : "is on a property that is no string, integer or boolean";
}

/** How often the keyword stands anywhere in a schema. A property may have that name; what is under it is a schema again. */
function count(node: unknown, isSchema: boolean): number {
  if (Array.isArray(node)) return node.reduce<number>((sum, item) => sum + count(item, isSchema), 0);
  if (!isNode(node)) return 0;
  return Object.entries(node).reduce((sum, [key, value]) => {
    if (isSchema && key === keyword) return sum + 1;
    if (isSchema && (key === "const" || key === "enum" || key === "default" || key === "examples"))
      return sum;
    const holdsNames =
      isSchema &&
      (key === "properties" || key === "$defs" || key === "definitions" || key === "patternProperties");
    return sum + count(value, !holdsNames);
  }, 0);
}

function propertiesOf(schema: SchemaNode): readonly [string, SchemaNode][] {
  const { properties } = schema;
  return isNode(properties)
    ? Object.entries(properties).filter((entry): entry is [string, SchemaNode] => isNode(entry[1]))
    : [];
}

function isNode(value: unknown): value is SchemaNode {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
