import { type Document, fields } from "./document.ts";
import type { SlicedWork } from "./slices.ts";

/** Units of work without a pause. */
const pauseUnits = 2000;

/** The documents of one server, by term. */
export class Postings {
  readonly documents: readonly Document[];
  /** Terms of each field of all documents together. */
  readonly lengths: readonly number[];
  /** By term: for each document that has it, and each of its fields that does, the document, the field and the count. */
  readonly #byTerm = new Map<string, number[]>();

  private constructor(documents: readonly Document[]) {
    this.documents = documents;
    this.lengths = fields.map((_, field) =>
      documents.reduce((sum, { lengths }) => sum + (lengths[field] ?? 0), 0),
    );
  }

  static *make(documents: readonly Document[]): SlicedWork<Postings> {
    const made = new Postings(documents);
    yield documents.length;
    let units = 0;
    for (const [number, { counts }] of documents.entries()) {
      for (const [term, of] of counts) {
        // A term takes longer than a character does.
        units += 4;
        if (units >= pauseUnits) {
          yield units;
          units = 0;
        }
        let list = made.#byTerm.get(term);
        if (list === undefined) made.#byTerm.set(term, (list = []));
        for (const [field, count] of of.entries()) if (count > 0) list.push(number, field, count);
      }
    }
    yield units;
    return made;
  }

  /** The triples of a term: document, field, count. Those of one document follow each other. */
  of(term: string): readonly number[] | undefined {
    return this.#byTerm.get(term);
  }
}
