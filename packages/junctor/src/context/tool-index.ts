import { cpuMsSince, cpuTime } from "@junctor/core/async";
import { isJsonObject } from "@junctor/core/json";
import type { Tool } from "@junctor/core/mcp";
import type { CallerInfo } from "@junctor/core/provider";
import { type Concept, termsOf, toConcepts } from "./terms.ts";

/** The server of a tool that a caller was listed, and the server's name for it. */
export type ServerOf = (
  tool: Tool,
  caller: CallerInfo,
) => { readonly server: string; readonly ownName: string };

/** A list of tools, ready to be searched. */
export interface IndexedList {
  /** The names of the best tools for a query, best first. A tool whose name is in the query comes before all others. */
  best(query: string, most: number): readonly string[];
  readonly byName: ReadonlyMap<string, Tool>;
  /** The names of the tools of each server. */
  readonly servers: ReadonlyMap<string, readonly string[]>;
  /** The best of one server. */
  bestOf(server: string, query: string, most: number): readonly string[];
}

/** Lists of tools whose postings are kept: callers that see different tools have lists of their own. */
const maxLists = 64;

/**
 * Indexes lists of tools. A definition is read once, whichever lists it is in; the postings of a server are kept while its tools are
 * the same, so a list in which one server changed costs what that server does. The work is done in slices, one list after the other.
 */
export class ToolIndex {
  readonly #serverOf: ServerOf;
  /** By the schema of a tool, which stays the same object when the tool is renamed; then by name. */
  readonly #documents = new WeakMap<
    object,
    Map<string, { readonly of: Tool; readonly document: Document }>
  >();
  /** By list: a promise while it is made. The oldest is forgotten first. */
  readonly #lists = new Map<readonly Tool[], Promise<IndexedList>>();
  /** By server: the postings that the lists above are made of. */
  #postings = new Map<string, Set<Postings>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(serverOf: ServerOf) {
    this.#serverOf = serverOf;
  }

  /** The index of a list, as a caller got it. The work begins at once and goes on in the background. */
  of(tools: readonly Tool[], caller: CallerInfo): Promise<IndexedList> {
    const known = this.#lists.get(tools);
    if (known !== undefined) return known;
    const made = this.#last.then(() => inSlices(this.#make(tools, caller)));
    // A list that fails does not hold up the next one.
    this.#last = made.catch(() => {});
    this.#lists.set(tools, made);
    made.catch(() => this.#lists.delete(tools));
    const [oldest] = this.#lists.keys();
    if (this.#lists.size > maxLists && oldest !== undefined) this.#lists.delete(oldest);
    return made;
  }

  *#make(tools: readonly Tool[], caller: CallerInfo): SlicedWork<IndexedList> {
    const byServer = new Map<string, Tool[]>();
    const ownNames = new Map<Tool, string>();
    const byName = new Map<string, Tool>();
    for (const tool of tools) {
      const { server, ownName } = this.#serverOf(tool, caller);
      ownNames.set(tool, ownName);
      const list = byServer.get(server);
      if (list === undefined) byServer.set(server, [tool]);
      else list.push(tool);
      byName.set(tool.name, tool);
      yield 10;
    }
    const postings = new Map<string, Postings>();
    for (const [server, list] of byServer) {
      const documents: Document[] = [];
      for (const tool of list)
        documents.push(yield* this.#documentOf(tool, ownNames.get(tool) ?? tool.name, server));
      const kept = [...(this.#postings.get(server) ?? [])].find((each) => isSame(each.documents, documents));
      postings.set(server, kept ?? (yield* Postings.make(documents)));
      yield list.length;
    }
    this.#keep(postings);
    const ranking = yield* makeRanking([...postings.values()]);
    const places = new Map([...postings.keys()].map((server, index) => [server, index]));
    return {
      best: (query, most) => ranking.best(query, most),
      byName,
      servers: new Map([...byServer].map(([server, list]) => [server, list.map(({ name }) => name)])),
      bestOf: (server, query, most) => {
        const place = places.get(server);
        return place === undefined ? [] : ranking.best(query, most, place);
      },
    };
  }

  *#documentOf(tool: Tool, ownName: string, server: string): SlicedWork<Document> {
    const byName =
      this.#documents.get(tool.inputSchema) ?? new Map<string, { of: Tool; document: Document }>();
    this.#documents.set(tool.inputSchema, byName);
    const known = byName.get(tool.name);
    if (known !== undefined && known.of.description === tool.description && known.of.title === tool.title)
      return known.document;
    const document = yield* readDocument(tool, ownName, server);
    byName.set(tool.name, { of: tool, document });
    return document;
  }

  /** Keeps postings for the next list, and forgets those of a server that has had many others since. */
  #keep(postings: ReadonlyMap<string, Postings>): void {
    for (const [server, made] of postings) {
      const kept = this.#postings.get(server) ?? new Set();
      kept.delete(made);
      kept.add(made);
      const [oldest] = kept;
      if (kept.size > maxVersions && oldest !== undefined) kept.delete(oldest);
      this.#postings.set(server, kept);
    }
    for (const server of this.#postings.keys())
      if (!postings.has(server) && this.#postings.size > maxServers) this.#postings.delete(server);
  }
}

/** The most versions of one server's postings that are kept. */
const maxVersions = 4;
const maxServers = 1024;

function isSame(one: readonly Document[], other: readonly Document[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index]);
}

/** Saturation: how soon it no longer matters that a tool repeats a term. */
const k1 = 1.2;
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

/** Makes the ranking of several servers' tools (BM25F). Synonyms count as one term. */
function* makeRanking(servers: readonly Postings[]): SlicedWork<Ranking> {
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
    // A name with the same score as the last one may come before it.
    if (this.#hits.length === this.#most) this.least = (this.#hits.at(-1)?.score ?? 0) * (1 - 1e-12);
  }
}

/** What a name in a query is worth: more than all terms together. A public name counts before a server's own. */
const exactly = 2_000_000;
const inOtherCase = 1_000_000;
const asOwn = 10_000;

/** Finds the tools whose names are in a query, by their numbers, and what that is worth for each. */
type FindNames = (query: string) => ReadonlyMap<number, number>;

/** A query is cut here, as for its terms. */
const maxQuery = 1000;

/** Makes a function that finds tools by the names in a query. Documents are numbered one after the other. */
function* indexNames(servers: readonly (readonly Document[])[]): SlicedWork<FindNames> {
  const documents: Document[] = [];
  const byName = new Map<string, number[]>();
  for (const list of servers) {
    for (const document of list) {
      const { name, ownName } = document;
      for (const key of new Set([name, ownName, name.toLowerCase(), ownName.toLowerCase()])) {
        const places = byName.get(key);
        if (places === undefined) byName.set(key, [documents.length]);
        else places.push(documents.length);
      }
      documents.push(document);
      yield 20;
    }
  }
  return (query) => {
    const found = new Map<number, number>();
    for (const { text, isName } of namesIn(query.slice(0, maxQuery))) {
      for (const key of new Set([text, text.toLowerCase()])) {
        for (const number of byName.get(key) ?? []) {
          const { name = "" } = documents[number] ?? {};
          const isPublic = name.toLowerCase() === text.toLowerCase();
          // `search` and `query` are the names of tools, and words that people use.
          if (!isPublic && !isName) continue;
          const bonus = name === text ? exactly : isPublic ? inOtherCase : asOwn;
          found.set(number, Math.max(bonus, found.get(number) ?? 0));
        }
      }
    }
    return found;
  };
}

interface NamedPart {
  readonly text: string;
  /** Whether it is meant as a name: all of the query, in quotes, or spelt unlike a word. */
  readonly isName: boolean;
}

/** Everything in a query that may be a name: all of it, and each part without the marks around it. */
function namesIn(query: string): readonly NamedPart[] {
  const whole = query.trim();
  const parts = whole.split(/\s+/).flatMap((part): readonly NamedPart[] => {
    const bare = part.replaceAll(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "");
    const isName = /^["'`].*["'`]\W*$/.test(part) || /[_\p{N}:/.-]|\p{Ll}\p{Lu}/u.test(bare);
    return [
      { text: part, isName },
      { text: bare, isName },
    ];
  });
  return [{ text: whole, isName: true }, ...parts].filter(({ text }) => text !== "");
}

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

/** The parts of a definition, each with its weight and how much its length counts against it (BM25F). */
const fields: readonly { readonly weight: number; readonly b: number }[] = [
  { weight: 2, b: 0 }, // server
  { weight: 3, b: 0.3 }, // name
  { weight: 1.5, b: 0.3 }, // title
  { weight: 1, b: 0.6 }, // description
  { weight: 0.5, b: 0.7 }, // names of parameters
  { weight: 0.3, b: 0.75 }, // descriptions of parameters
];
const fieldCount = fields.length;
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
interface Document {
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
    for (const part of slicesOf(text.slice(0, maxCharacters))) {
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
function* slicesOf(text: string): Generator<string> {
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
  if (!isJsonObject(schema) || depth > maxDepth) return;
  const { properties, items } = schema;
  if (isJsonObject(properties)) {
    // Not all of its entries at once: there may be a million.
    for (const key in properties) {
      if (into.left-- <= 0 || into.room <= 0) return;
      if (!Object.hasOwn(properties, key)) continue;
      into.names.push(key.slice(0, maxName));
      const value = properties[key];
      if (isJsonObject(value) && typeof value["description"] === "string") {
        const text = value["description"].slice(0, into.room);
        into.texts.push(text);
        into.room -= text.length;
      }
      collectParameters(value, into, depth + 1);
    }
  }
  collectParameters(items, into, depth + 1);
}

/** Work that can be paused. It yields how much was done since the last time: about one unit for each character or term. */
export type SlicedWork<T> = Generator<number, T>;

/** Units of work after which others get their turn: about 1 ms of a usual processor. */
const maxUnits = 10_000;
/** The same in CPU time of this process, for slower processors. */
const maxCpuMs = 4;

/**
 * Does work in slices, between which the event loop does other work. A slice ends by what was done in it, not by the clock on the wall:
 * on a busy machine time passes in which nothing was done.
 */
export async function inSlices<T>(work: SlicedWork<T>): Promise<T> {
  for (;;) {
    const begun = cpuTime();
    let units = 0;
    let isOver = false;
    while (!isOver) {
      const step = work.next();
      if (step.done === true) return step.value;
      units += step.value;
      isOver = units >= maxUnits || cpuMsSince(begun) >= maxCpuMs;
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
