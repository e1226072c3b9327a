import { stemOf } from "./stem.ts";
import { synonymsOf } from "./synonyms.ts";
import { wordsOf } from "./terms.ts";

/** One concept of a query: its own term, and others that may stand for it. */
export interface Concept {
  /** The term of the query; undefined for a concept that is only implied. */
  readonly own: string | undefined;
  /** By term: how much it counts. */
  readonly weights: ReadonlyMap<string, number>;
}

/** A query is cut here: longer ones are texts, and cost more than they find. */
const maxQuery = 1000;
const maxTerms = 32;

/** Two words of a query that a tool writes as one: `data source`, `datasource`. */
const joinedWeight = 0.8;

/** A query that asks a question slightly prefers tools that read. */
const asks = /^\s*(?:which|what|who|how|where|is|are|does|show|see)\b/i;
const reading: Concept = {
  own: undefined,
  weights: new Map([
    ["get", 0.3],
    ["list", 0.3],
    ["read", 0.2],
    ["search", 0.2],
    ["retriev", 0.15],
  ]),
};

/** The concepts of a query. */
export function toConcepts(query: string): readonly Concept[] {
  const words = wordsOf(query.slice(0, maxQuery)).slice(0, maxTerms);
  const own = new Map<string, Map<string, number>>();
  for (const word of words) {
    const term = stemOf(word);
    if (!own.has(term)) own.set(term, new Map([[term, 1]]));
  }
  for (const [term, weights] of own)
    for (const [other, weight] of synonymsOf(term)) if (!own.has(other)) weights.set(other, weight);
  for (const [at, word] of words.entries()) {
    const next = words[at + 1];
    if (next === undefined) break;
    for (const each of [word, next]) own.get(stemOf(each))?.set(stemOf(word + next), joinedWeight);
  }
  const concepts = [...own].map(([term, weights]) => ({ own: term, weights }));
  return asks.test(query) ? [...concepts, reading] : concepts;
}
