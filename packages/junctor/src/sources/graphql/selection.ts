import {
  getNamedType,
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isAbstractType,
  isInterfaceType,
  isLeafType,
  isNonNullType,
  isObjectType,
} from "graphql";

/** Fields of lists that are cut into pages: they do not count as a level of depth. */
const ofPages = new Set(["edges", "node", "nodes", "pageInfo"]);
/** The most fields of one document. */
const maxFields = 150;
/** The most types of a union that are asked for their own fields. */
const maxTypes = 8;

interface Budget {
  readonly schema: GraphQLSchema;
  /** Fields that may still be asked. */
  left: number;
}

/** What a document asks of a value of this type, in braces; nothing for one without fields. */
export function selectFields(schema: GraphQLSchema, type: GraphQLOutputType, depth: number): string {
  return select(type, depth, { schema, left: maxFields });
}

function select(output: GraphQLOutputType, depth: number, budget: Budget): string {
  const type = getNamedType(output);
  if (isLeafType(type)) return "";
  if (isObjectType(type)) return wrap(listFields(type, depth, budget, new Map()));
  if (!isAbstractType(type)) return wrap([]);
  // In one answer a name has one type, whichever type of the union it is of.
  const types = new Map<string, string>();
  const shared = isInterfaceType(type) ? listFields(type, depth, budget, types) : [];
  const known = new Set(types.keys());
  const own = budget.schema
    .getPossibleTypes(type)
    .slice(0, maxTypes)
    .flatMap((each) => {
      const fields = listFields(each, depth, budget, types, known);
      return fields.length === 0 ? [] : [`... on ${each.name} { ${fields.join(" ")} }`];
    });
  return wrap(["__typename", ...shared, ...own]);
}

const wrap = (fields: readonly string[]): string =>
  ` { ${fields.length === 0 ? "__typename" : fields.join(" ")} }`;

/** The fields of a type that can be asked, but for the `known` ones. Leaf values come first: they are worth more than nested objects. */
function listFields(
  type: GraphQLObjectType | GraphQLInterfaceType,
  depth: number,
  budget: Budget,
  types: Map<string, string>,
  known: ReadonlySet<string> = new Set(),
): readonly string[] {
  const isPage = /(?:Connection|Edge)$/.test(type.name);
  const askable = Object.values(type.getFields()).filter(
    (field) => isAskable(field) && !known.has(field.name),
  );
  const isValue = (field: (typeof askable)[number]): boolean => isLeafType(getNamedType(field.type));
  const sorted = [...askable.filter(isValue), ...askable.filter((field) => !isValue(field))];
  return sorted.flatMap((field) => {
    const isFree = isPage && ofPages.has(field.name);
    const written = String(field.type);
    if (budget.left <= 0 || (!isValue(field) && depth <= 0 && !isFree)) return [];
    if ((types.get(field.name) ?? written) !== written) return [];
    types.set(field.name, written);
    budget.left--;
    return [`${field.name}${select(field.type, isFree ? depth : depth - 1, budget)}`];
  });
}

/** Whether a field can be asked without an argument. */
function isAskable({ args, deprecationReason }: GraphQLField<unknown, unknown>): boolean {
  if (typeof deprecationReason === "string") return false;
  return args.every(({ type, defaultValue }) => !isNonNullType(type) || defaultValue !== undefined);
}
