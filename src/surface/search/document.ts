import type { Tool } from "../../mcp/types.ts";
import { termsOf } from "./terms.ts";

/** The parts of a definition, each with its weight and how much its length counts against it (BM25F). */
export const fields: readonly { readonly weight: number; readonly b: number }[] = [
  { weight: 2, b: 0 }, // server
  { weight: 3, b: 0.3 }, // name
  { weight: 1.5, b: 0.3 }, // title
  { weight: 1, b: 0.6 }, // description
  { weight: 0.5, b: 0.7 }, // names of parameters
  { weight: 0.3, b: 0.75 }, // descriptions of parameters
];
const [server, name, title, description, parameterNames, parameterTexts] = [0, 1, 2, 3, 4, 5] as const;

/** In parameters a term counts twice at most: lists of columns repeat themselves. */
const maxRepeats = 2;
/** Characters of one field that are looked at. */
const maxCharacters = 10_000;
const maxParameters = 500;
const maxDepth = 4;

/** A tool as the index has it. */
export interface Document {
  readonly name: string;
  /** Its server's name for it, as far as that is known. */
  readonly ownName: string;
  /** Terms of each field. */
  readonly lengths: readonly number[];
  /** By term: how often each field has it. */
  readonly counts: ReadonlyMap<string, readonly number[]>;
}

/** Reads a definition for the index. `ownName` is the name without the prefix of its server. */
export function toDocument(tool: Tool, ownName: string, serverName: string): Document {
  const parameters: ParameterTexts = { names: "", texts: "", left: maxParameters };
  collectParameters(tool.inputSchema, parameters);
  const texts: string[] = [];
  texts[server] = serverName;
  texts[name] = ownName;
  texts[title] = tool.title ?? tool.annotations?.title ?? "";
  texts[description] = tool.description ?? "";
  texts[parameterNames] = parameters.names;
  texts[parameterTexts] = parameters.texts;
  const counts = new Map<string, number[]>();
  const lengths = texts.map((text, field) => {
    const terms = termsOf(text.slice(0, maxCharacters));
    for (const term of terms) {
      let of = counts.get(term);
      if (of === undefined) counts.set(term, (of = [0, 0, 0, 0, 0, 0]));
      const most = field >= parameterNames ? maxRepeats : Number.POSITIVE_INFINITY;
      of[field] = Math.min(most, (of[field] ?? 0) + 1);
    }
    return terms.length;
  });
  return { name: tool.name, ownName, lengths, counts };
}

interface ParameterTexts {
  names: string;
  texts: string;
  /** Parameters that may still be read. */
  left: number;
}

/** Names and descriptions of the parameters of a schema, also of those within objects and lists. */
function collectParameters(schema: unknown, into: ParameterTexts, depth = 0): void {
  if (!isObject(schema) || depth > maxDepth) return;
  const { properties, items } = schema;
  if (isObject(properties)) {
    for (const [key, value] of Object.entries(properties)) {
      if (into.left-- <= 0 || into.texts.length > maxCharacters) return;
      into.names += ` ${key}`;
      if (isObject(value) && typeof value["description"] === "string")
        into.texts += ` ${value["description"]}`;
      collectParameters(value, into, depth + 1);
    }
  }
  collectParameters(items, into, depth + 1);
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
