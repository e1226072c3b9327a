import type { Clock } from "../../async/clock.ts";
import { createDeferred } from "../../async/deferred.ts";
import type { Client } from "../../client/client.ts";
import type { CacheHints, Prompt, Resource, ResourceTemplate, Tool } from "../../mcp/types.ts";
import { definitionOf } from "../../tools/definition.ts";
import type { ListFault, ListPart } from "../../tools/fit/list-fault.ts";
import type { Change } from "../../tools/provider.ts";
import { toReason } from "./to-reason.ts";

/** Everything a server lists, as it was last known. An array that did not change is the same array. */
export interface Listed {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
  /** How long it may be kept by others. */
  readonly hints: CacheHints;
  /** What could not be listed, and why. */
  readonly problems: readonly string[];
  /** Whether the server that runs now listed all of this; else some of it is known from before. */
  readonly isConfirmed: boolean;
  /** The same of its tools alone. */
  readonly areToolsConfirmed: boolean;
  /** What clients would refuse: things that were mended, and things that were left out. */
  readonly faults: readonly ListFault[];
}

export type ListKind = "tools" | "resources" | "prompts";

interface ListKeeperOptions {
  readonly clock: Clock;
  /** How long changes are waited for that come with the first. */
  readonly gatherMs: number;
  /** Told what changed, once it is known here, and whether it was listed for the first time. */
  readonly onListed: (changed: readonly ListKind[], isFirst: boolean) => void;
  /** Told of a change of one resource. */
  readonly onResource: (uri: string) => void;
  /** What is known from before. */
  readonly known?: Listed | undefined;
  /** The lists of another line. A list that says the same is the same array, so that many lines take the memory of one. */
  readonly twin?: (() => Listed) | undefined;
}

const partsOf: { readonly [Kind in ListKind]: readonly ListPart[] } = {
  tools: ["tools"],
  resources: ["resources", "templates"],
  prompts: ["prompts"],
};

/** Every list a server may have. */
export const listParts: readonly ListPart[] = ["tools", "resources", "templates", "prompts"];

const nothing: Listed = {
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

/** A server that is up, and what is being listed there. */
interface Listing {
  readonly client: Client;
  /** To be listed, once more if it is underway. */
  readonly outdated: Set<ListPart>;
  readonly underway: Map<ListPart, Promise<void>>;
}

/**
 * Keeps the last good lists of one server: listed when it comes up, and again when it says that something changed. Each
 * list is known as soon as it came, so one that hangs does not hide the others.
 */
export class ListKeeper {
  readonly #options: ListKeeperOptions;
  readonly #problems = new Map<ListPart, string>();
  readonly #heardOf = new Set<ListKind>();
  /** Settle when a list came for the first time, or could not be had. */
  readonly #firsts = new Map(listParts.map((part) => [part, createDeferred<void>()]));
  readonly #unconfirmed = new Set<ListPart>(listParts);
  #listed: Listed = nothing;
  #isListed = false;
  #listing: Listing | undefined;
  #refreshedAt = 0;
  readonly #listedAt = new Map<ListPart, number>();
  /** What the server said has changed: that is passed on, even if the list looks the same. */
  readonly #announced = new Set<ListPart>();
  #stopTimer: (() => void) | undefined;

  constructor(options: ListKeeperOptions) {
    this.#options = options;
    if (options.known !== undefined) {
      this.#listed = { ...options.known, isConfirmed: false, areToolsConfirmed: false };
      this.#isListed = true;
    }
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
    return this.#options.known === undefined ? this.fresh(part) : undefined;
  }

  /** Whether its tools were listed since it was started, and nothing is being listed now. */
  get isSettled(): boolean {
    return !this.#unconfirmed.has("tools") && (this.#listing?.underway.size ?? 0) === 0;
  }

  /** A server came up: everything is listed. Resolves when that is done, for better or worse. */
  begin(client: Client): Promise<void> {
    this.end();
    const listing: Listing = { client, outdated: new Set(), underway: new Map() };
    this.#listing = listing;
    client.onChange?.((change) => {
      if (this.#listing === listing) this.#heard(change);
    });
    return this.#refresh(listing, listParts);
  }

  /** The server is gone; what it listed is still what is known of it. */
  end(): void {
    this.#listing = undefined;
    this.#heardOf.clear();
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  /** Lists some things again now that were not listed since a moment, if the server is up. */
  async refreshSince(kinds: readonly ListKind[], since: number): Promise<void> {
    const listing = this.#listing;
    if (listing === undefined) return;
    const isOld = (part: ListPart): boolean => (this.#listedAt.get(part) ?? 0) < since;
    const old = kinds.filter((kind) => partsOf[kind].some(isOld));
    for (const kind of old) listing.client.forgetLists(kind);
    await this.#refresh(
      listing,
      old.flatMap((kind) => partsOf[kind]),
    );
  }

  /** Lists everything again, in the background, if that was not done for so long. */
  refreshAfter(ms: number): void {
    if (this.#listing === undefined || this.#options.clock.now() - this.#refreshedAt < ms) return;
    void this.#refresh(this.#listing, listParts);
  }

  #heard(change: Change): void {
    if (change.kind === "resource") return this.#options.onResource(change.uri);
    this.#heardOf.add(change.kind);
    const { clock, gatherMs } = this.#options;
    // A server that announces changes without end is listed without haste.
    this.#stopTimer ??= clock.timer(gatherMs, () => {
      this.#stopTimer = undefined;
      const parts = Array.from(this.#heardOf, (kind) => partsOf[kind]).flat();
      this.#heardOf.clear();
      parts.forEach((part) => this.#announced.add(part));
      if (this.#listing !== undefined) void this.#refresh(this.#listing, parts);
    });
  }

  async #refresh(listing: Listing, parts: readonly ListPart[]): Promise<void> {
    if (parts === listParts) this.#refreshedAt = this.#options.clock.now();
    const { outdated, underway } = listing;
    const refreshed = parts.map((part) => {
      outdated.add(part);
      const listed = underway.get(part) ?? this.#listWhileOutdated(listing, part);
      underway.set(part, listed);
      return listed;
    });
    await Promise.all(refreshed);
  }

  /** One after the other, so that an older list never replaces a newer one. */
  async #listWhileOutdated(listing: Listing, part: ListPart): Promise<void> {
    while (listing.outdated.delete(part)) await this.#list(listing, part);
    listing.underway.delete(part);
  }

  async #list(listing: Listing, part: ListPart): Promise<void> {
    const { client } = listing;
    this.#listedAt.set(part, this.#options.clock.now());
    const isAnnounced = this.#announced.delete(part);
    let items: Listed[ListPart] | undefined;
    let problem: string | undefined;
    try {
      const fetched = await listers[part](client);
      const other = this.#options.twin?.()[part];
      items = other !== undefined && isSame(fetched, other) ? other : fetched;
    } catch (error) {
      problem = `its ${names[part]} cannot be listed: ${toReason(error)}`;
    }
    // What a server says while it dies is not news.
    if (this.#listing !== listing) return;
    if (problem === undefined) this.#problems.delete(part);
    else this.#problems.set(part, problem);
    const last = this.#listed[part];
    // A list that never came holds nothing that the server would have to confirm. Without the tools, too little is known.
    const hasNothing = part !== "tools" && last.length === 0;
    if (problem === undefined || hasNothing) this.#unconfirmed.delete(part);
    if (part === "tools" && problem === undefined) this.#isListed = true;
    const isChanged = items !== undefined && !isSame(items, last);
    const { faults } = this.#listed;
    this.#listed = {
      ...this.#listed,
      [part]: isChanged ? items : last,
      faults: items === undefined ? faults : withFaults(faults, part, client.listFaults),
      hints: client.cacheHints ?? nothing.hints,
      problems: listParts.flatMap((each) => this.#problems.get(each) ?? []),
      isConfirmed: this.#unconfirmed.size === 0,
      areToolsConfirmed: !this.#unconfirmed.has("tools"),
    };
    this.#firsts.get(part)?.resolve();
    const isFirst = this.#firsts.delete(part);
    const kind = part === "templates" ? "resources" : part;
    this.#options.onListed(isChanged || isAnnounced ? [kind] : [], isFirst);
  }
}

const listers: { readonly [P in ListPart]: (client: Client) => Promise<Listed[P]> } = {
  tools: (client) => client.listTools(),
  resources: (client) => client.listResources(),
  templates: (client) => client.listResourceTemplates(),
  prompts: (client) => client.listPrompts(),
};

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
