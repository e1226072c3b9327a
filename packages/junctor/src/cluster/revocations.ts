import { createHash } from "node:crypto";
import { type Clock, systemClock } from "@junctor/core/async";
import type { JsonObject } from "@junctor/core/json";
import { type ClusterStore, storeBounds } from "./store.ts";

interface Revocation {
  readonly isRevoked: boolean;
  /** The date of the change; of two entries for one caller, the later counts. */
  readonly at: number;
}

/** How often a replica checks whether it missed news. */
const lookMs = 3_000;
/** Entries in the store live for a week. Replicas write them again when they are gone. */
const ttlMs = storeBounds.ttlMs;
const maxEntries = 4096;
/** How many values of the store the entries are spread over, because the length of a value is limited. */
const slots = 64;
const digestKey = "revoked";

interface RevocationOptions {
  readonly store: ClusterStore;
  readonly clock?: Clock;
  /** A person revoked a caller at another replica, or let it in again there. */
  readonly onChange: (caller: string, isRevoked: boolean) => void;
  readonly onWarning?: (text: string, error?: unknown) => void;
}

/**
 * The callers that a person revoked, the same at all replicas. A change is published as news and written to the store. A replica that
 * missed the news, or starts later, compares a digest every 3 s, reads the entries if it differs, and writes those that the store lacks:
 * an engine that was restarted gets everything again. Disposing it stops the checks.
 */
export class SharedRevocations implements Disposable {
  readonly #options: RevocationOptions;
  readonly #clock: Clock;
  readonly #entries = new Map<string, Revocation>();
  readonly #stopNews: () => void;
  #isFailing = false;
  #isOver = false;
  #stopTimer = (): void => {};
  /** The last check: they run one after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: RevocationOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#stopNews = options.store.onNews((news) => {
      const revocation = parseNews(news);
      if (revocation !== undefined) this.#apply(revocation.caller, revocation);
    });
    void this.#look().then(() => this.#lookLater());
  }

  /** Tells all replicas. Resolves when the store has the change, or has failed: the next look writes it again. */
  async change(caller: string, isRevoked: boolean): Promise<void> {
    // Later than all that is known here, also where the clock of another machine is ahead.
    const at = Math.max(this.#clock.date(), (this.#entries.get(caller)?.at ?? 0) + 1);
    this.#learn(caller, { isRevoked, at });
    const news = JSON.stringify({ kind, caller, isRevoked, at });
    // A change that cannot be published now is found by the next look of each replica.
    const published =
      news.length > storeBounds.value ? undefined : this.#options.store.publish(news).catch(() => {});
    await Promise.all([published, this.#look()]);
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#stopNews();
    this.#stopTimer();
  }

  /** Takes an entry if it is newer. A revocation wins over a restoration of the same moment. */
  #learn(caller: string, entry: Revocation): boolean {
    const known = this.#entries.get(caller);
    if (
      known !== undefined &&
      (known.at > entry.at || (known.at === entry.at && known.isRevoked >= entry.isRevoked))
    )
      return false;
    this.#entries.set(caller, entry);
    forgetOldest(this.#entries);
    return (known?.isRevoked ?? false) !== entry.isRevoked;
  }

  #apply(caller: string, entry: Revocation): void {
    if (this.#learn(caller, entry)) this.#options.onChange(caller, entry.isRevoked);
  }

  #look(): Promise<void> {
    this.#last = this.#last
      .then(() => this.#synchronize())
      .then(
        () => void (this.#isFailing = false),
        (error: unknown) => {
          const text = "revoked callers cannot be compared with other replicas";
          if (!this.#isFailing) this.#options.onWarning?.(text, error);
          this.#isFailing = true;
        },
      );
    return this.#last;
  }

  #lookLater(): void {
    if (this.#isOver) return;
    this.#stopTimer = this.#clock.timer(lookMs, () => void this.#look().then(() => this.#lookLater()));
  }

  async #synchronize(): Promise<void> {
    const { store, onWarning } = this.#options;
    const entries = this.#entries;
    if (this.#isOver) return;
    if ((await store.read(digestKey)) === (entries.size === 0 ? undefined : digestOf(entries))) return;
    const stored = await Promise.all(slotNumbers.map((slot) => store.read(`${digestKey}:${slot}`)));
    for (const text of stored)
      for (const [caller, entry] of parseEntries(text)) if (!this.#isOver) this.#apply(caller, entry);
    if (entries.size === 0) return;
    const texts = formatSlots(entries);
    const writes = texts.flatMap((text, slot) => {
      if (text === (stored[slot] ?? "{}")) return [];
      if (text.length <= storeBounds.value) return [store.write(`${digestKey}:${slot}`, text, ttlMs)];
      onWarning?.("too many callers are revoked to tell all of them to other replicas");
      return [];
    });
    await Promise.all(writes);
    await store.write(digestKey, digestOf(entries), ttlMs);
  }
}

const kind = "revocation";
const slotNumbers: readonly number[] = Array.from({ length: slots }, (_, slot) => slot);

/** Callers that were let in again are forgotten first. */
function forgetOldest(entries: Map<string, Revocation>): void {
  if (entries.size <= maxEntries) return;
  const byAge = [...entries].toSorted(
    ([, a], [, b]) => Number(a.isRevoked) - Number(b.isRevoked) || a.at - b.at,
  );
  for (const [caller] of byAge.slice(0, entries.size - maxEntries)) entries.delete(caller);
}

function digestOf(entries: ReadonlyMap<string, Revocation>): string {
  return createHash("sha256").update(formatSlots(entries).join("\n")).digest("base64url");
}

function formatSlots(entries: ReadonlyMap<string, Revocation>): readonly string[] {
  const parts = slotNumbers.map((): Record<string, readonly [number, number]> => ({}));
  for (const [caller, { isRevoked, at }] of [...entries].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const slot = (createHash("sha256").update(caller).digest()[0] ?? 0) % slots;
    Object.defineProperty(parts[slot], caller, { value: [Number(isRevoked), at], enumerable: true });
  }
  return parts.map((part) => JSON.stringify(part));
}

/** Entries that cannot be read, such as those of another version, are left out. */
function parseEntries(text: string | undefined): readonly (readonly [string, Revocation])[] {
  return Object.entries(parseObject(text ?? "{}")).flatMap(([caller, value]) => {
    if (!Array.isArray(value)) return [];
    const [isRevoked, at] = value as readonly unknown[];
    return isDate(at) ? [[caller, { isRevoked: isRevoked === 1, at }] as const] : [];
  });
}

function parseNews(news: string): (Revocation & { readonly caller: string }) | undefined {
  const { kind: newsKind, caller, isRevoked, at } = parseObject(news);
  if (newsKind !== kind || typeof caller !== "string" || typeof isRevoked !== "boolean" || !isDate(at))
    return undefined;
  return { caller, isRevoked, at };
}

function isDate(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value);
}

function parseObject(text: string): JsonObject {
  try {
    return Object(JSON.parse(text)) as JsonObject;
  } catch {
    return {};
  }
}
