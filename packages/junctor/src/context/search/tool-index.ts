import type { Tool } from "@junctor/core/mcp";
import type { CallerInfo } from "@junctor/core/provider";
import { type Document, readDocument } from "./document.ts";
import { Postings } from "./postings.ts";
import { makeRanking } from "./ranking.ts";
import { inSlices, type SlicedWork } from "./slices.ts";

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
    // The next list is not kept waiting by one that failed.
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
      if (kept.size > maxEditions && oldest !== undefined) kept.delete(oldest);
      this.#postings.set(server, kept);
    }
    for (const server of this.#postings.keys())
      if (!postings.has(server) && this.#postings.size > maxServers) this.#postings.delete(server);
  }
}

/** Editions of one server's postings that are kept beside those in use. */
const maxEditions = 4;
const maxServers = 1024;

function isSame(one: readonly Document[], other: readonly Document[]): boolean {
  return one.length === other.length && one.every((each, index) => each === other[index]);
}
