import type { Client } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import type { ListPart } from "@junctor/core/fit";
import { announcedAs } from "@junctor/core/mcp";
import type { Change } from "@junctor/core/provider";
import { toProvider } from "./client-provider.ts";
import { type KnownLists, type ListAnswer, type Listed, listParts } from "./known-lists.ts";

export type ListKind = "tools" | "resources" | "prompts";

interface ListKeeperOptions {
  readonly clock: Clock;
  /** The lists that it keeps up to date. */
  readonly lists: KnownLists;
  /** How long changes are waited for that come with the first. */
  readonly gatherMs: number;
  /** Called with the lists that changed, once they are known here. `isFirst`: nothing was listed before. */
  readonly onListed: (changed: readonly ListKind[], isFirst: boolean) => void;
}

const partsOf: { readonly [Kind in ListKind]: readonly ListPart[] } = {
  tools: ["tools"],
  resources: ["resources", "templates"],
  prompts: ["prompts"],
};

/** A server that is up, and its lists that are being fetched. */
interface ListedServer {
  readonly client: Client;
  /** To be listed, once more if it is underway. */
  readonly outdated: Set<ListPart>;
  readonly underway: Map<ListPart, Promise<void>>;
  /** The kinds of things that the server said have changed since the timer was set. */
  readonly heardOf: Set<ListKind>;
  stopTimer: (() => void) | undefined;
  /** How long the next announcement is waited on before the server is listed again. */
  pauseMs: number;
  /** When the server was last listed because of an announcement. */
  listedAt: number;
  /** Announcements before this time do not list the server again at once. */
  restsUntil: number;
}

/** Longest pause before a server that announces changes again and again is listed. */
const maxPauseMs = 30_000;

/** A server that announced nothing for so many pauses is listed at once again. */
const quietPauses = 4;

/** Pause after a list, for each item in it; 30 s at most. Reading a long list costs CPU time here, and again when callers list it. */
const restPerItemMs = 1;

/** Pause after a list that failed, as a multiple of the time it took; 30 s at most. It may have been too long, and was read up to the limit. */
const restPerFailure = 20;

/**
 * Keeps the lists of one server up to date: fetched when it comes up, and again when it says that something changed. Each
 * list is known as soon as it came, so one that hangs does not hide the others.
 */
export class ListKeeper {
  readonly #options: ListKeeperOptions;
  /** When each list was last asked for. */
  readonly #askedAt = new Map<ListPart, number>();
  /** Lists that the server said have changed: that is announced to callers even if the list looks the same. */
  readonly #announced = new Set<ListPart>();
  #listing: ListedServer | undefined;

  constructor(options: ListKeeperOptions) {
    this.#options = options;
  }

  /** Whether the tools were listed since the server was started, and nothing is being listed now. */
  get isSettled(): boolean {
    return this.#options.lists.listed.areToolsConfirmed && (this.#listing?.underway.size ?? 0) === 0;
  }

  /** A server came up: everything is listed. Resolves when that is done, for better or worse. */
  begin(client: Client): Promise<void> {
    this.end();
    const listing: ListedServer = {
      client,
      outdated: new Set(),
      underway: new Map(),
      heardOf: new Set(),
      stopTimer: undefined,
      pauseMs: this.#options.gatherMs,
      listedAt: Number.NEGATIVE_INFINITY,
      restsUntil: Number.NEGATIVE_INFINITY,
    };
    this.#listing = listing;
    toProvider(client).onChange?.((change) => {
      if (this.#listing === listing) this.#heard(listing, change);
    });
    return this.#refresh(listing, listParts);
  }

  /** The server is gone; its lists stay known. */
  end(): void {
    this.#listing?.stopTimer?.();
    this.#listing = undefined;
  }

  /** Lists some things again now that were not listed since a moment, if the server is up. */
  async refreshSince(kinds: readonly ListKind[], since: number): Promise<void> {
    const listing = this.#listing;
    if (listing === undefined) return;
    const isOld = (part: ListPart): boolean => this.#lastAskedAt(part) < since;
    const old = kinds.filter((kind) => partsOf[kind].some(isOld));
    for (const kind of old) listing.client.forgetLists(kind);
    await this.#refresh(
      listing,
      old.flatMap((kind) => partsOf[kind]),
    );
  }

  /** Lists everything again, in the background, if one of the lists was not asked for so long. */
  refreshAfter(ms: number): void {
    const oldest = Math.min(...listParts.map((part) => this.#lastAskedAt(part)));
    if (this.#listing === undefined || this.#options.clock.now() - oldest < ms) return;
    void this.#refresh(this.#listing, listParts);
  }

  #lastAskedAt(part: ListPart): number {
    return this.#askedAt.get(part) ?? 0;
  }

  #heard(listing: ListedServer, { part }: Change): void {
    listing.heardOf.add(announcedAs(part));
    if (listing.stopTimer !== undefined) return;
    const { clock, gatherMs } = this.#options;
    // A server that announces changes without end is listed ever more rarely: each list costs time that others want.
    const isQuiet = clock.now() - listing.listedAt >= quietPauses * listing.pauseMs;
    listing.pauseMs = isQuiet ? gatherMs : Math.min(2 * listing.pauseMs, maxPauseMs);
    const waitMs = Math.max(listing.pauseMs, listing.restsUntil - clock.now());
    listing.stopTimer = clock.timer(waitMs, () => {
      listing.stopTimer = undefined;
      listing.listedAt = clock.now();
      const parts = Array.from(listing.heardOf, (kind) => partsOf[kind]).flat();
      listing.heardOf.clear();
      parts.forEach((part) => this.#announced.add(part));
      void this.#refresh(listing, parts);
    });
  }

  async #refresh(listing: ListedServer, parts: readonly ListPart[]): Promise<void> {
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
  async #listWhileOutdated(listing: ListedServer, part: ListPart): Promise<void> {
    while (listing.outdated.delete(part)) await this.#list(listing, part);
    listing.underway.delete(part);
  }

  async #list(listing: ListedServer, part: ListPart): Promise<void> {
    const { clock, lists, onListed } = this.#options;
    const { client } = listing;
    this.#askedAt.set(part, clock.now());
    const isAnnounced = this.#announced.delete(part);
    let answer: ListAnswer;
    try {
      answer = { items: await listers[part](client) };
    } catch (error) {
      answer = { error };
    }
    // The answers of a server that dies meanwhile are not news.
    if (this.#listing !== listing) return;
    const now = clock.now();
    const restMs =
      "error" in answer
        ? restPerFailure * (now - this.#lastAskedAt(part))
        : restPerItemMs * answer.items.length;
    listing.restsUntil = Math.max(listing.restsUntil, now + Math.min(restMs, maxPauseMs));
    const { isChanged, isFirst } = lists.take(part, answer, client);
    const kind = part === "templates" ? "resources" : part;
    onListed(isChanged || isAnnounced ? [kind] : [], isFirst);
  }
}

const listers: { readonly [P in ListPart]: (client: Client) => Promise<Listed[P]> } = {
  tools: (client) => client.listTools(),
  resources: (client) => client.listResources(),
  templates: (client) => client.listResourceTemplates(),
  prompts: (client) => client.listPrompts(),
};
