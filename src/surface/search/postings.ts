import { type Document, fields } from "./document.ts";

const fieldCount = fields.length;
const weights = fields.map(({ weight }) => weight);
/** Saturation: how soon it stops to matter that a tool says a term again. */
const k1 = 1.2;

/** The documents of one server, by term. */
export class Postings {
  readonly documents: readonly Document[];
  /** Terms of each field of all documents together. */
  readonly lengths: readonly number[];
  /** By term: for each document that has it, and each of its fields that does, the document, the field and the count. */
  readonly #byTerm = new Map<string, number[]>();
  /** For the averages of the last query: what a count in a field of a document is divided by, as a factor. */
  #norms: { readonly averages: readonly number[]; readonly factors: Float64Array } | undefined;

  private constructor(documents: readonly Document[]) {
    this.documents = documents;
    this.lengths = fields.map((_, field) =>
      documents.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0),
    );
  }

  /** Makes the postings of some documents, document by document, so that the work can be spread. */
  static *make(documents: readonly Document[]): Generator<void, Postings> {
    const made = new Postings(documents);
    for (const [number, { counts }] of documents.entries()) {
      for (const [term, of] of counts) {
        let list = made.#byTerm.get(term);
        if (list === undefined) made.#byTerm.set(term, (list = []));
        for (const [field, count] of of.entries()) if (count > 0) list.push(number, field, count);
      }
      yield;
    }
    return made;
  }

  /** In how many documents a term is. */
  frequency(term: string): number {
    const list = this.#byTerm.get(term) ?? [];
    let count = 0;
    for (let at = 0; at < list.length; at += 3) if (list[at] !== list[at - 3]) count++;
    return count;
  }

  /** Adds what a term is worth to the score of each document that has it. */
  addScores(term: string, worth: number, averages: readonly number[], scores: Float64Array): void {
    const list = this.#byTerm.get(term);
    if (list === undefined) return;
    const factors = this.#factorsFor(averages);
    for (let at = 0; at < list.length;) {
      const number = list[at] as number;
      let weight = 0;
      for (; list[at] === number; at += 3) {
        const field = list[at + 1] as number;
        weight += (list[at + 2] as number) * (factors[number * fieldCount + field] as number);
      }
      scores[number] = (scores[number] as number) + (worth * weight) / (k1 + weight);
    }
  }

  #factorsFor(averages: readonly number[]): Float64Array {
    if (this.#norms?.averages === averages) return this.#norms.factors;
    const factors = new Float64Array(this.documents.length * fieldCount);
    for (const [number, { lengths }] of this.documents.entries()) {
      for (const [field, { b }] of fields.entries()) {
        const relative = (lengths[field] ?? 0) / (averages[field] || 1);
        factors[number * fieldCount + field] = (weights[field] ?? 0) / (1 - b + b * relative);
      }
    }
    this.#norms = { averages, factors };
    return factors;
  }
}
