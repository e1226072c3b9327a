import { type Concept, toConcepts } from "./concepts.ts";
import { fields } from "./document.ts";
import { indexNames } from "./names.ts";
import type { Postings } from "./postings.ts";
import type { SlicedWork } from "./slices.ts";

/** Saturation: how soon it stops to matter that a tool says a term again. */
const k1 = 1.2;
const fieldCount = fields.length;
/** Weights of terms in tools that are remembered: the same terms are asked for again and again. */
const maxKnown = 200_000;

/** The tools of several servers, ready to be ranked by queries. */
interface Ranking {
  /**
   * The names of the best tools for a query, best first; of one server if it is given by its place. A tool whose name is in the query
   * comes before all others.
   */
  best(query: string, most: number, server?: number): readonly string[];
}

/** Makes the ranking of several servers' tools (BM25F). Terms that say the same count as one term. */
export function* makeRanking(servers: readonly Postings[]): SlicedWork<Ranking> {
  const starts: number[] = [0];
  for (const { documents } of servers) starts.push((starts.at(-1) ?? 0) + documents.length);
  const total = starts.at(-1) ?? 0;
  const factors = yield* makeFactors(servers, total);
  const byName = yield* indexNames(servers.map(({ documents }) => documents));
  const documents = servers.flatMap((each) => each.documents);
  yield total;
  const uses = createUses(servers, starts, factors);
  // Used by one query at a time, and clean between them.
  const scores = new Float64Array(total);
  const weights = new Float64Array(total);
  const worthOf = (frequency: number): number => Math.log(1 + (total - frequency + 0.5) / (frequency + 0.5));

  /** Adds what one concept is worth to the score of each tool that has it. */
  const addConcept = ({ own, weights: terms }: Concept): void => {
    const touched: number[] = [];
    let ownFrequency = 0;
    for (const [term, share] of terms) {
      const { numbers, weights: of } = uses(term);
      for (let at = 0; at < numbers.length; at++) {
        const number = numbers[at] as number;
        const before = weights[number] as number;
        if (before === 0) touched.push(number);
        weights[number] = before + share * (of[at] as number);
      }
      if (term === own) ownFrequency = numbers.length;
    }
    const common = worthOf(touched.length);
    const worth = own === undefined ? 1 : ownFrequency === 0 ? common : (worthOf(ownFrequency) + common) / 2;
    for (const number of touched) {
      const weight = weights[number] as number;
      scores[number] = (scores[number] as number) + (worth * weight) / (k1 + weight);
      weights[number] = 0;
    }
  };

  return {
    best: (query, most, server) => {
      scores.fill(0);
      for (const concept of toConcepts(query)) addConcept(concept);
      for (const [number, bonus] of byName(query)) scores[number] = (scores[number] ?? 0) + bonus;
      const top = new Top(most);
      const end = server === undefined ? total : (starts[server + 1] ?? 0);
      for (let number = starts[server ?? 0] ?? 0; number < end; number++) {
        const score = scores[number] as number;
        if (score > top.least) top.add(documents[number]?.name ?? "", score);
      }
      return top.names;
    },
  };
}

/** For each document and field: its weight, less where the field is longer than that of others. */
function* makeFactors(servers: readonly Postings[], total: number): SlicedWork<Float32Array> {
  const averages = fields.map(
    (_, field) => servers.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0) / Math.max(1, total),
  );
  const factors = new Float32Array(total * fieldCount);
  let at = 0;
  for (const { documents } of servers) {
    for (const { lengths } of documents) {
      for (const [field, { weight, b }] of fields.entries()) {
        const relative = (lengths[field] ?? 0) / (averages[field] || 1);
        factors[at++] = weight / (1 - b + b * relative);
      }
      yield fieldCount;
    }
  }
  return factors;
}

/** The tools that use a term, and how much weight it has in each. */
interface TermUses {
  readonly numbers: Uint32Array;
  readonly weights: Float32Array;
}

function createUses(
  servers: readonly Postings[],
  starts: readonly number[],
  factors: Float32Array,
): (term: string) => TermUses {
  const known = new Map<string, TermUses>();
  let size = 0;
  const find = (term: string): TermUses => {
    const numbers: number[] = [];
    const weights: number[] = [];
    for (const [index, server] of servers.entries()) {
      const list = server.of(term) ?? [];
      const start = starts[index] ?? 0;
      for (let at = 0; at < list.length;) {
        const first = list[at] as number;
        const number = start + first;
        let weight = 0;
        for (; list[at] === first; at += 3)
          weight +=
            (list[at + 2] as number) * (factors[number * fieldCount + (list[at + 1] as number)] as number);
        numbers.push(number);
        weights.push(weight);
      }
    }
    return { numbers: Uint32Array.from(numbers), weights: Float32Array.from(weights) };
  };
  return (term) => {
    let found = known.get(term);
    if (found === undefined) {
      found = find(term);
      size += found.numbers.length + 1;
      if (size > maxKnown) {
        known.clear();
        size = found.numbers.length + 1;
      }
      known.set(term, found);
    }
    return found;
  };
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
