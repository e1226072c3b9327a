import type { Client } from "@junctor/client";
import { createDeferred } from "@junctor/core/async";
import type { ListFault, ListPart } from "@junctor/core/fit";
import {
  type CacheHints,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  definitionOf,
} from "@junctor/core/mcp";
import { Listing } from "@junctor/core/provider";
import { toReason } from "./to-reason.ts";

/** Everything a server lists, as it was last known. An array that did not change is the same array. */
export interface Listed {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
  /** How long it may be kept by others. */
  readonly hints: CacheHints;
  /** The lists that failed, and why. */
  readonly problems: readonly string[];
  /** Whether the server that runs now listed all of this; else some of it is known from before. */
  readonly isConfirmed: boolean;
  /** The same of its tools alone. */
  readonly areToolsConfirmed: boolean;
  /** Definitions that clients would refuse: those that were mended, and those that were left out. */
  readonly faults: readonly ListFault[];
}

/** Every list a server may have. */
export const listParts: readonly ListPart[] = ["tools", "resources", "templates", "prompts"];

/** The lists of a server that listed nothing so far. */
export const nothingListed: Listed = {
  tools: [],
  resources: [],
  templates: [],
  prompts: [],
  hints: { ttlMs: 0, cacheScope: "private" },
  problems: [],
  isConfirmed: false,
  areToolsConfirmed: false,
  faults: [],
};

const listings = new WeakMap<readonly object[], Listing<object>>();

/** One of the lists; the same object while neither its items nor its hints changed. */
export function toListing<Part extends ListPart>(
  { hints, ...listed }: Listed,
  part: Part,
): Listing<Listed[Part][number]> {
  const items: readonly object[] = listed[part];
  const known = listings.get(items);
  const isSame = known?.hints?.ttlMs === hints.ttlMs && known.hints.cacheScope === hints.cacheScope;
  const listing = isSame && known !== undefined ? known : new Listing(items, { hints });
  listings.set(items, listing);
  return listing as Listing<Listed[Part][number]>;
}

interface KnownListsOptions {
  /** The lists of an earlier run. */
  readonly remembered?: Listed | undefined;
  /** The lists of another connection. A list that says the same is the same array, so that many connections take the memory of one. */
  readonly twin?: (() => Listed) | undefined;
}

/** One list as a server gave it just now, or why it cannot be listed. */
export type ListAnswer = { readonly items: Listed[ListPart] } | { readonly error: unknown };

/** The last good lists of one server on one connection. They stay known when the server is gone. */
export class KnownLists {
  readonly #options: KnownListsOptions;
  readonly #problems = new Map<ListPart, string>();
  /** Each settles when its list came for the first time, or could not be had. */
  readonly #firsts = new Map(listParts.map((part) => [part, createDeferred<void>()]));
  readonly #unconfirmed = new Set<ListPart>(listParts);
  #listed: Listed = nothingListed;
  #isListed = false;

  constructor(options: KnownListsOptions) {
    this.#options = options;
    const { remembered } = options;
    if (remembered === undefined) return;
    this.#listed = { ...remembered, isConfirmed: false, areToolsConfirmed: false };
    this.#isListed = true;
  }

  get listed(): Listed {
    return this.#listed;
  }

  /** Whether its tools were ever listed. */
  get isListed(): boolean {
    return this.#isListed;
  }

  /** Settles when a list came for the first time since the start, or could not be had; undefined when that is so. */
  fresh(part: ListPart): Promise<void> | undefined {
    return this.#firsts.get(part)?.promise;
  }

  /** The same, but also undefined when the list is known from before. */
  first(part: ListPart): Promise<void> | undefined {
    return this.#options.remembered === undefined ? this.fresh(part) : undefined;
  }

  /** Takes a new answer for one list; a list that cannot be had stays as it was last known. */
  take(part: ListPart, answer: ListAnswer, client: Client): { isChanged: boolean; isFirst: boolean } {
    if ("error" in answer)
      this.#problems.set(part, `its ${names[part]} cannot be listed: ${toReason(answer.error)}`);
    else this.#problems.delete(part);
    const last = this.#listed[part];
    const items = "error" in answer ? last : this.#orTwin(part, answer.items);
    // A list that never came holds nothing that the server would have to confirm. Without the tools, too little is known.
    const hasNothing = part !== "tools" && last.length === 0;
    if (!("error" in answer) || hasNothing) this.#unconfirmed.delete(part);
    if (part === "tools" && !("error" in answer)) this.#isListed = true;
    const isChanged = !isSame(items, last);
    const { faults } = this.#listed;
    this.#listed = {
      ...this.#listed,
      [part]: isChanged ? items : last,
      faults: "error" in answer ? faults : withFaults(faults, part, client.listFaults),
      hints: client.cacheHints ?? nothingListed.hints,
      problems: listParts.flatMap((each) => this.#problems.get(each) ?? []),
      isConfirmed: this.#unconfirmed.size === 0,
      areToolsConfirmed: !this.#unconfirmed.has("tools"),
    };
    this.#firsts.get(part)?.resolve();
    return { isChanged, isFirst: this.#firsts.delete(part) };
  }

  #orTwin(part: ListPart, items: Listed[ListPart]): Listed[ListPart] {
    const other = this.#options.twin?.()[part];
    return other !== undefined && isSame(items, other) ? other : items;
  }
}

const names: { readonly [P in ListPart]: string } = {
  tools: "tools",
  resources: "resources",
  templates: "resource templates",
  prompts: "prompts",
};

/** The faults of one list replaced; of the others a client may not have all lists yet. */
function withFaults(
  faults: readonly ListFault[],
  renewed: ListPart,
  found: readonly ListFault[],
): readonly ListFault[] {
  return listParts.flatMap((part) =>
    (part === renewed ? found : faults).filter((fault) => fault.part === part),
  );
}

function isSame(items: readonly object[], last: readonly object[]): boolean {
  return (
    items.length === last.length &&
    items.every((item, index) => {
      const other = last[index];
      return item === other || (other !== undefined && definitionOf(item).text === definitionOf(other).text);
    })
  );
}
