import { fields } from "./document.ts";
import type { Postings } from "./postings.ts";
import { synonymsOf, synonymWeight } from "./synonyms.ts";
import { termsOf } from "./terms.ts";

/** A query is cut here: longer ones are texts, and cost more than they find. */
const maxQuery = 1000;
const maxTerms = 32;
/** Terms whose servers are remembered. */
const maxKnown = 5000;

/** The score of a tool whose very name is in the query: above all others. */
const exactly = 1_000_000;
const asOwn = 1000;

/** The tools of several servers, ready to be ranked by queries. */
export interface Ranking {
  /** The names of the best tools for a query, best first. A tool whose name is in the query comes before all others. */
  best(query: string, most: number): readonly string[];
}

/** Makes the ranking of several servers' tools, server by server, so that the work can be spread. */
export function* makeRanking(servers: readonly Postings[]): Generator<void, Ranking> {
  const total = servers.reduce((sum, { documents }) => sum + documents.length, 0);
  const averages = fields.map(
    (_, field) => servers.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0) / Math.max(1, total),
  );
  const byName = yield* indexNames(servers);
  /** The servers that have a term, and what it is worth. The same terms are asked for again and again. */
  const known = new Map<string, { readonly servers: readonly number[]; readonly worth: number }>();
  const lookUp = (term: string): { readonly servers: readonly number[]; readonly worth: number } => {
    let found = known.get(term);
    if (found === undefined) {
      const frequencies = servers.map((server) => server.frequency(term));
      const frequency = frequencies.reduce((sum, each) => sum + each, 0);
      const holders = frequencies.flatMap((each, index) => (each === 0 ? [] : [index]));
      found = { servers: holders, worth: Math.log(1 + (total - frequency + 0.5) / (frequency + 0.5)) };
      if (known.size >= maxKnown) known.clear();
      known.set(term, found);
    }
    return found;
  };
  return {
    best: (query, most) => {
      const asked = query.slice(0, maxQuery);
      const scores = new Map<number, Float64Array>();
      const scoresOf = (index: number): Float64Array => {
        let of = scores.get(index);
        if (of === undefined)
          scores.set(index, (of = new Float64Array(servers[index]?.documents.length ?? 0)));
        return of;
      };
      for (const [term, weight] of weighTerms(asked)) {
        const { servers: holders, worth } = lookUp(term);
        for (const index of holders)
          servers[index]?.addScores(term, weight * worth, averages, scoresOf(index));
      }
      for (const name of namesIn(asked))
        for (const [index, number] of byName.get(name) ?? []) {
          const server = servers[index];
          if (server !== undefined) addBonus(server, number, name, scoresOf(index));
        }
      const top = new Top(most);
      for (const [index, of] of scores) {
        for (let number = 0; number < of.length; number++) {
          const score = of[number] as number;
          if (score > top.least) top.add(servers[index]?.documents[number]?.name ?? "", score);
        }
      }
      return top.names;
    },
  };
}

/** The terms of a query, and at less weight those that say the same. */
function weighTerms(query: string): readonly (readonly [term: string, weight: number])[] {
  const own = new Set([...new Set(termsOf(query))].slice(0, maxTerms));
  const others = new Set([...own].flatMap((term) => [...synonymsOf(term)]).filter((term) => !own.has(term)));
  return [
    ...[...own].map((term) => [term, 1] as const),
    ...[...others].slice(0, maxTerms).map((term) => [term, synonymWeight] as const),
  ];
}

/** Where each name and own name is, as written and in lower case. */
function* indexNames(
  servers: readonly Postings[],
): Generator<void, ReadonlyMap<string, readonly (readonly [server: number, document: number])[]>> {
  const byName = new Map<string, (readonly [number, number])[]>();
  for (const [index, { documents }] of servers.entries()) {
    for (const [number, { name, ownName }] of documents.entries()) {
      for (const key of new Set([name, ownName, name.toLowerCase(), ownName.toLowerCase()])) {
        const places = byName.get(key);
        if (places === undefined) byName.set(key, [[index, number]]);
        else places.push([index, number]);
      }
    }
    yield;
  }
  return byName;
}

function addBonus({ documents }: Postings, number: number, asked: string, scores: Float64Array): void {
  const name = documents[number]?.name ?? "";
  const bonus = asked === name ? 2 * exactly : asked === name.toLowerCase() ? exactly : asOwn;
  scores[number] = Math.max(scores[number] ?? 0, ((scores[number] ?? 0) % asOwn) + bonus);
}

/** Everything in a query that may be a name: all of it, and each part without the marks around it. */
function namesIn(query: string): ReadonlySet<string> {
  const parts = query
    .split(/\s+/)
    .flatMap((part) => [part, part.replaceAll(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "")]);
  const names = [query.trim(), ...parts].filter((part) => part !== "");
  return new Set(names.flatMap((part) => [part, part.toLowerCase()]));
}

/** The names with the highest scores. Of equal ones the first by name, so that the same query has the same answer. */
class Top {
  readonly #most: number;
  #hits: { readonly name: string; readonly score: number }[] = [];
  /** A score must be above this to count. */
  least = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(name: string, score: number): void {
    this.#hits.push({ name, score });
    if (this.#hits.length >= 4 * this.#most) this.#cut();
  }

  get names(): readonly string[] {
    this.#cut();
    return this.#hits.map(({ name }) => name);
  }

  #cut(): void {
    this.#hits = this.#hits
      .toSorted((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
      .slice(0, this.#most);
    // One with the same score as the last may come first by name.
    if (this.#hits.length === this.#most) this.least = (this.#hits.at(-1)?.score ?? 0) * (1 - 1e-12);
  }
}
