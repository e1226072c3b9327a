import type { Tool } from "@junctor/core/mcp";
import type { SlicedWork } from "./slices.ts";
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
/** Characters of the name of one parameter that are looked at. */
const maxName = 200;

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
export function* readDocument(tool: Tool, ownName: string, serverName: string): SlicedWork<Document> {
  const parameters: ParameterTexts = { names: [], texts: [], left: maxParameters, room: maxCharacters };
  collectParameters(tool.inputSchema, parameters);
  yield parameters.names.length;
  const texts: string[] = [];
  texts[server] = serverName;
  texts[name] = ownName;
  texts[title] = tool.title ?? tool.annotations?.title ?? "";
  texts[description] = tool.description ?? "";
  texts[parameterNames] = parameters.names.join(" ");
  texts[parameterTexts] = parameters.texts.join(" ");
  const counts = new Map<string, number[]>();
  const lengths = texts.map(() => 0);
  for (const [field, text] of texts.entries()) {
    const most = field >= parameterNames ? maxRepeats : Number.POSITIVE_INFINITY;
    for (const part of partsOf(text.slice(0, maxCharacters))) {
      const terms = termsOf(part);
      for (const term of terms) {
        let of = counts.get(term);
        if (of === undefined) counts.set(term, (of = [0, 0, 0, 0, 0, 0]));
        of[field] = Math.min(most, (of[field] ?? 0) + 1);
      }
      lengths[field] = (lengths[field] ?? 0) + terms.length;
      yield part.length;
    }
  }
  return { name: tool.name, ownName, lengths, counts };
}

/** Characters that are read without a pause. */
const partLength = 2000;

/** A text in parts that end between words, where words are no longer than a part. */
function* partsOf(text: string): Generator<string> {
  for (let at = 0; at < text.length;) {
    const space = text.lastIndexOf(" ", at + partLength);
    const end = text.length - at <= partLength ? text.length : space > at ? space : at + partLength;
    yield text.slice(at, end);
    at = end;
  }
}

interface ParameterTexts {
  readonly names: string[];
  readonly texts: string[];
  /** Parameters that may still be read, and characters of their descriptions. */
  left: number;
  room: number;
}

/** Names and descriptions of the parameters of a schema, also of those within objects and lists. */
function collectParameters(schema: unknown, into: ParameterTexts, depth = 0): void {
  if (!isObject(schema) || depth > maxDepth) return;
  const { properties, items } = schema;
  if (isObject(properties)) {
    // Not all of its entries at once: there may be a million.
    for (const key in properties) {
      if (into.left-- <= 0 || into.room <= 0) return;
      if (!Object.hasOwn(properties, key)) continue;
      into.names.push(key.slice(0, maxName));
      const value = properties[key];
      if (isObject(value) && typeof value["description"] === "string") {
        const text = value["description"].slice(0, into.room);
        into.texts.push(text);
        into.room -= text.length;
      }
      collectParameters(value, into, depth + 1);
    }
  }
  collectParameters(items, into, depth + 1);
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
