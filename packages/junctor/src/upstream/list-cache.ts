import type { Client } from "@junctor/client";
import { type Clock, createDeferred, waitFor } from "@junctor/core/async";
import type { ListFault, ListPart } from "@junctor/core/fit";
import {
  announcedAs,
  type CacheHints,
  definitionOf,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
} from "@junctor/core/mcp";
import { type Change, Listing } from "@junctor/core/provider";
import type { Health } from "./connection.ts";
import { toReason } from "./failure.ts";

/** Everything a server lists, as it was last known. An array that did not change is the same array. */
export interface Listed {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
  /** How long others may keep it. */
  readonly hints: CacheHints;
  /** The lists that failed, and why. */
  readonly problems: readonly string[];
  /** Whether the server that runs now listed all of this; else some of it is known from before. */
  readonly isConfirmed: boolean;
  /** The same for its tools alone. */
  readonly areToolsConfirmed: boolean;
  /** Definitions that clients would refuse: those that were mended, and those that were left out. */
  readonly faults: readonly ListFault[];
}

/** Every list a server may have. */
export const listParts: readonly ListPart[] = ["tools", "resources", "templates", "prompts"];

export type ListKind = "tools" | "resources" | "prompts";

const partsOf: { readonly [Kind in ListKind]: readonly ListPart[] } = {
  tools: ["tools"],
  resources: ["resources", "templates"],
  prompts: ["prompts"],
};

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

interface ListCacheOptions {
  readonly clock: Clock;
  /** The lists of an earlier run. */
  readonly remembered?: Listed | undefined;
  /** The lists of another connection. An equal list is the same array, so that many connections take the memory of one. */
  readonly twin?: (() => Listed) | undefined;
  /** Called with the lists that changed, once they are known here. `isFirst`: a list came for the first time. */
  readonly report: (changed: readonly ListKind[], isFirst: boolean) => void;
}

/** One list as a server gave it just now, or why it cannot be listed. */
type ListAnswer = { readonly items: Listed[ListPart] } | { readonly error: unknown };

/** A server that is up, and its lists that are being fetched. */
interface Fetching {
  readonly client: Client;
  /** To be listed, once more if it is underway. */
  readonly outdated: Set<ListPart>;
  readonly underway: Map<ListPart, Promise<void>>;
  /** The kinds of things that the server said have changed since the timer was set. */
  readonly announced: Set<ListKind>;
  stopTimer: (() => void) | undefined;
  /** How long after the next announcement the server is listed again. */
  pauseMs: number;
  /** When the server was last listed because of an announcement. */
  listedAt: number;
  /** Announcements before this time do not list the server again at once. */
  restsUntil: number;
}

/** How long to wait for more changes after the first. */
const gatherMs = 50;

/** Longest pause before a server that announces changes again and again is listed. */
const maxPauseMs = 30_000;

/** A server that announced nothing for this many pauses is listed at once again. */
const quietPauses = 4;

/** Pause after a list, for each item in it; 30 s at most. Reading a long list costs CPU time here, and again when callers list it. */
const restPerItemMs = 1;

/**
 * Pause after a list that failed, as a multiple of the time it took; 30 s at most. A list that is too long fails after it was read up to
 * the limit.
 */
const restPerFailure = 20;

/**
 * What a server lists on one connection: fetched when it comes up, and again when it says that something changed. Each list is known as
 * soon as it came, so one that hangs does not hide the others. The last good lists stay known when the server is gone.
 *
 * Callers wait for the first lists within a bound, and not after the server failed: one that cannot start holds up no caller twice.
 */
export class ListCache {
  readonly #options: ListCacheOptions;
  readonly #problems = new Map<ListPart, string>();
  /** Each settles when its list came for the first time, or failed. */
  readonly #firsts = new Map(listParts.map((part) => [part, createDeferred<void>()]));
  readonly #unconfirmed = new Set<ListPart>(listParts);
  #listed: Listed = nothingListed;
  #isListed = false;
  /** When each list was last asked for. */
  readonly #askedAt = new Map<ListPart, number>();
  /** Lists that the server said have changed: that is announced to callers even if the list looks the same. */
  readonly #announced = new Set<ListPart>();
  #fetching: Fetching | undefined;
  #health: Health = { kind: "idle" };
  /** When the server was last started from rest; undefined while it is at rest. */
  #startedAt: number | undefined;
  /** Settles when the server fails; made each time it is up. */
  #failure = createDeferred<void>();
  /** Until when {@link untilOwn} waits. */
  #ownUntil: number | undefined;

  constructor(options: ListCacheOptions) {
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

  /** Whether the tools were listed since the server was started, and nothing is being listed now. */
  get isSettled(): boolean {
    return this.#listed.areToolsConfirmed && (this.#fetching?.underway.size ?? 0) === 0;
  }

  /** The server is about to be started. */
  noteStart(): void {
    this.#startedAt = this.#options.clock.now();
  }

  /** The health of the server changed. */
  noteHealth(health: Health): void {
    this.#health = health;
    if (health.kind !== "up") this.end();
    if (health.kind === "idle") this.#startedAt = undefined;
    if (health.kind === "up") this.#failure = createDeferred();
    if (health.kind === "down" || health.kind === "stopped") this.#failure.resolve();
  }

  /** A server came up: everything is listed. Resolves when each list came or failed. */
  begin(client: Client): Promise<void> {
    this.end();
    const fetching: Fetching = {
      client,
      outdated: new Set(),
      underway: new Map(),
      announced: new Set(),
      stopTimer: undefined,
      pauseMs: gatherMs,
      listedAt: Number.NEGATIVE_INFINITY,
      restsUntil: Number.NEGATIVE_INFINITY,
    };
    this.#fetching = fetching;
    client.onChange?.((change) => {
      if (this.#fetching === fetching) this.#noteChange(fetching, change);
    });
    return this.#refresh(fetching, listParts);
  }

  /** The server is gone; its lists stay known. */
  end(): void {
    this.#fetching?.stopTimer?.();
    this.#fetching = undefined;
  }

  /** If the server is up, lists those of these kinds again that were not listed since this time. */
  async refreshSince(kinds: readonly ListKind[], since: number): Promise<void> {
    const fetching = this.#fetching;
    if (fetching === undefined) return;
    const isOld = (part: ListPart): boolean => this.#lastAskedAt(part) < since;
    const old = kinds.filter((kind) => partsOf[kind].some(isOld));
    for (const kind of old) fetching.client.forgetLists(kind);
    await this.#refresh(
      fetching,
      old.flatMap((kind) => partsOf[kind]),
    );
  }

  /** Lists everything again, in the background, if one of the lists is older than this, and older than the server said that lists may be kept. */
  refreshAfter(ms: number): void {
    const staleMs = Math.max(ms, this.#listed.hints.ttlMs);
    const oldest = Math.min(...listParts.map((part) => this.#lastAskedAt(part)));
    if (this.#fetching === undefined || this.#options.clock.now() - oldest < staleMs) return;
    void this.#refresh(this.#fetching, listParts);
  }

  /** Resolves when every list came or failed since the start, or the server failed. */
  async untilAll(): Promise<void> {
    await Promise.all(listParts.flatMap((part) => this.#orFailure(this.#first(part)) ?? []));
  }

  /** For a list request, which waits up to `firstListMs` after the start: undefined when there is nothing to wait for. */
  untilFirst(part: ListPart, firstListMs: number): Promise<unknown> | undefined {
    const { clock, remembered } = this.#options;
    const leftMs = (this.#startedAt ?? 0) + firstListMs - clock.now();
    const isNew = leftMs > 0 && remembered === undefined;
    const first = isNew ? this.#orFailure(this.#first(part)) : undefined;
    return first && waitFor(first, { ms: leftMs, clock });
  }

  /**
   * For a call of something that is in no list: undefined when there is nothing to wait for. A list that is only remembered is
   * waited for too, because the server may have more by now. Rejects with the signal's reason when it aborts first.
   */
  untilNamed(part: ListPart, startTimeoutMs: number, signal: AbortSignal): Promise<unknown> | undefined {
    const { clock } = this.#options;
    const now = clock.now();
    const { kind } = this.#health;
    // A server that is up and does not list is waited for once, and not by each call.
    const since = this.#health.kind === "up" ? this.#health.since : now;
    const leftMs = since + startTimeoutMs - now;
    const isComing =
      this.#startedAt !== undefined || kind === "waiting" || kind === "starting" || kind === "up";
    const first = isComing && leftMs > 0 ? this.#orFailure(this.#first(part)) : undefined;
    return first && waitFor(first, { ms: leftMs, clock, signal });
  }

  /**
   * For the first list on a connection of a caller's own: it is waited for up to `maxMs` after the first such request, and not when
   * `up` rejects. Undefined when there is nothing to wait for.
   */
  untilOwn(part: ListPart, maxMs: number, up: () => Promise<unknown>): Promise<unknown> | undefined {
    const { clock } = this.#options;
    this.#ownUntil ??= clock.now() + maxMs;
    const leftMs = this.#ownUntil - clock.now();
    const first = this.#first(part);
    if (first === undefined || leftMs <= 0) return undefined;
    const listed = up().then(
      () => first,
      () => {},
    );
    return waitFor(Promise.race([first, listed]), { ms: leftMs, clock });
  }

  /** Settles when a list came for the first time since the start, or failed; undefined when that has happened. */
  #first(part: ListPart): Promise<void> | undefined {
    return this.#firsts.get(part)?.promise;
  }

  #orFailure(listed: Promise<void> | undefined): Promise<void> | undefined {
    const health = this.#health;
    const isAgain = (health.kind === "starting" || health.kind === "waiting") && health.after !== undefined;
    const hasFailed = health.kind === "down" || health.kind === "stopped" || isAgain;
    if (listed === undefined || hasFailed) return undefined;
    return Promise.race([listed, this.#failure.promise]);
  }

  #lastAskedAt(part: ListPart): number {
    return this.#askedAt.get(part) ?? 0;
  }

  #noteChange(fetching: Fetching, { part }: Change): void {
    const kind = announcedAs(part);
    // What is in a group may be in any list.
    for (const each of kind === "groups" ? (Object.keys(partsOf) as ListKind[]) : [kind])
      fetching.announced.add(each);
    if (fetching.stopTimer !== undefined) return;
    const { clock } = this.#options;
    // A server that announces changes without end is listed ever more rarely: each list costs time that others want.
    const isQuiet = clock.now() - fetching.listedAt >= quietPauses * fetching.pauseMs;
    fetching.pauseMs = isQuiet ? gatherMs : Math.min(2 * fetching.pauseMs, maxPauseMs);
    const waitMs = Math.max(fetching.pauseMs, fetching.restsUntil - clock.now());
    fetching.stopTimer = clock.timer(waitMs, () => {
      fetching.stopTimer = undefined;
      fetching.listedAt = clock.now();
      const parts = Array.from(fetching.announced, (kind) => partsOf[kind]).flat();
      fetching.announced.clear();
      parts.forEach((each) => this.#announced.add(each));
      void this.#refresh(fetching, parts);
    });
  }

  async #refresh(fetching: Fetching, parts: readonly ListPart[]): Promise<void> {
    const { outdated, underway } = fetching;
    const refreshed = parts.map((part) => {
      outdated.add(part);
      const listed = underway.get(part) ?? this.#listWhileOutdated(fetching, part);
      underway.set(part, listed);
      return listed;
    });
    await Promise.all(refreshed);
  }

  /** One after the other, so that an older list never replaces a newer one. */
  async #listWhileOutdated(fetching: Fetching, part: ListPart): Promise<void> {
    while (fetching.outdated.delete(part)) await this.#list(fetching, part);
    fetching.underway.delete(part);
  }

  async #list(fetching: Fetching, part: ListPart): Promise<void> {
    const { clock, report } = this.#options;
    const { client } = fetching;
    this.#askedAt.set(part, clock.now());
    const isAnnounced = this.#announced.delete(part);
    let answer: ListAnswer;
    try {
      answer = { items: await listers[part](client) };
    } catch (error) {
      answer = { error };
    }
    // The answers of a server that dies meanwhile are not news.
    if (this.#fetching !== fetching) return;
    const now = clock.now();
    const restMs =
      "error" in answer
        ? restPerFailure * (now - this.#lastAskedAt(part))
        : restPerItemMs * answer.items.length;
    fetching.restsUntil = Math.max(fetching.restsUntil, now + Math.min(restMs, maxPauseMs));
    const { isChanged, isFirst } = this.#take(part, answer, client);
    const kind = part === "templates" ? "resources" : part;
    report(isChanged || isAnnounced ? [kind] : [], isFirst);
  }

  /** Takes a new answer for one list; a list that failed stays as it was last known. */
  #take(part: ListPart, answer: ListAnswer, client: Client): { isChanged: boolean; isFirst: boolean } {
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
      hints: client.listHints,
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
