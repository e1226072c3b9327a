/** An event that can be sent again. */
export interface StoredEvent {
  readonly id: string;
  readonly data: string;
}

/**
 * Keeps the events of legacy streams, so that a client that lost its connection can get the rest. Ids are
 * `stream:number`, so an id names its stream and its position there.
 */
export interface EventStore {
  /** Stores an event and returns its id. It counts towards the share of `owner`. */
  append(stream: string, data: string, owner?: string): string | Promise<string>;
  /** The events of the same stream after this one; undefined when some of them are no longer kept. */
  after(eventId: string): readonly StoredEvent[] | undefined | Promise<readonly StoredEvent[] | undefined>;
  /** Drops a stream: no events are appended or read any more. */
  forget(stream: string): void | Promise<void>;
}

export interface MemoryEventStoreOptions {
  /** The most bytes kept of one stream; older events are dropped first. */
  readonly maxStreamBytes?: number;
  /**
   * Most bytes kept in all. Events of the owner with most bytes are dropped first, beginning with its stream that was written
   * to longest ago.
   */
  readonly maxTotalBytes?: number;
  /** The most streams kept; beyond that one is dropped by the same rule, and can then not be resumed. */
  readonly maxStreams?: number;
}

/** The kept events of one stream. */
interface Ring {
  readonly stream: string;
  readonly shelf: Shelf;
  /** The events before `head` are dropped. They are removed from the array when they are half of it. */
  events: StoredEvent[];
  head: number;
  /** The number of the next event. */
  next: number;
  bytes: number;
  /** Its neighbours in the order of last writing. */
  older: Ring | undefined;
  newer: Ring | undefined;
}

/** The streams of one owner, in the order of last writing. */
interface Shelf {
  readonly owner: string | undefined;
  bytes: number;
  streams: number;
  // A linked list: to find the first entry of a map, V8 walks past all deleted ones.
  oldest: Ring | undefined;
  newest: Ring | undefined;
  /** The oldest stream that has events. Older ones have lost theirs, and still count as streams. */
  oldestKept: Ring | undefined;
}

/** Events in the memory of this process, bounded. Each append takes the same time, also at the limits. */
export function createMemoryEventStore(options: MemoryEventStoreOptions = {}): EventStore {
  const { maxStreamBytes = 1024 * 1024 } = options;
  const rings = new Rings(options);
  return {
    append: (stream, data, owner) => {
      const ring = rings.open(stream, owner);
      const event = { id: `${stream}:${ring.next++}`, data };
      rings.push(ring, event);
      while (ring.bytes > maxStreamBytes && ring.events.length - ring.head > 1) rings.dropEvent(ring);
      rings.makeRoom(ring);
      return event.id;
    },
    after: (eventId) => {
      const ring = rings.get(streamOf(eventId));
      const digits = eventId.slice(eventId.lastIndexOf(":") + 1);
      const number = Number(digits);
      if (ring === undefined || !/^[0-9]{1,15}$/.test(digits) || number >= ring.next) return undefined;
      const first = ring.next - (ring.events.length - ring.head);
      return number + 1 < first ? undefined : ring.events.slice(ring.head + number + 1 - first);
    },
    forget: (stream) => {
      const ring = rings.get(stream);
      if (ring !== undefined) rings.dropStream(ring);
    },
  };
}

/** The streams of all owners. Decides which is dropped next. */
class Rings {
  readonly #maxTotalBytes: number;
  readonly #maxStreams: number;
  readonly #byStream = new Map<string, Ring>();
  readonly #shelves = new Map<string | undefined, Shelf>();
  /** The first number of an unknown stream. It is beyond all numbers of dropped streams, because it may be one of them. */
  #start = 0;
  #total = 0;

  constructor({ maxTotalBytes = 64 * 1024 * 1024, maxStreams = 100_000 }: MemoryEventStoreOptions) {
    this.#maxTotalBytes = maxTotalBytes;
    this.#maxStreams = maxStreams;
  }

  get(stream: string): Ring | undefined {
    return this.#byStream.get(stream);
  }

  /** The stream to write to, which becomes the newest of its owner. */
  open(stream: string, owner: string | undefined): Ring {
    let ring = this.#byStream.get(stream);
    if (ring === undefined) {
      const shelf = this.#shelfOf(owner);
      shelf.streams++;
      ring = {
        stream,
        shelf,
        events: [],
        head: 0,
        next: this.#start,
        bytes: 0,
        older: undefined,
        newer: undefined,
      };
      this.#byStream.set(stream, ring);
    } else unlink(ring);
    linkAsNewest(ring);
    return ring;
  }

  push(ring: Ring, event: StoredEvent): void {
    ring.events.push(event);
    this.#count(ring, sizeOf(event));
  }

  dropEvent(ring: Ring): void {
    this.#count(ring, -sizeOf(ring.events[ring.head++] as StoredEvent));
    if (2 * ring.head < ring.events.length) return;
    ring.events = ring.events.slice(ring.head);
    ring.head = 0;
  }

  dropStream(ring: Ring): void {
    this.#count(ring, -ring.bytes);
    unlink(ring);
    // The map may keep the ring in memory for a while; see `Numbered`.
    ring.events = [];
    this.#byStream.delete(ring.stream);
    if (--ring.shelf.streams === 0) this.#shelves.delete(ring.shelf.owner);
  }

  /** Drops events and streams until the limits hold. The stream that was just written to stays. */
  makeRoom(written: Ring): void {
    while (this.#total > this.#maxTotalBytes) {
      const ring = this.#nextToDrop("oldestKept", "bytes", written);
      if (ring === undefined) break;
      this.#dropEvents(ring);
    }
    while (this.#byStream.size > this.#maxStreams) {
      const ring = this.#nextToDrop("oldest", "streams", written);
      if (ring === undefined) break;
      this.#start = Math.max(this.#start, ring.next);
      this.dropStream(ring);
    }
  }

  /** The stream to drop next: one of the owner with most bytes or streams. */
  #nextToDrop(which: "oldestKept" | "oldest", by: "bytes" | "streams", written: Ring): Ring | undefined {
    let most: Shelf | undefined;
    for (const shelf of this.#shelves.values()) {
      const isCandidate = shelf[which] !== undefined && shelf[which] !== written;
      if (isCandidate && (most === undefined || shelf[by] > most[by])) most = shelf;
    }
    return most?.[which];
  }

  /** Keeps `next`, so that no id is used twice: a client may still come back with the id of a dropped event. */
  #dropEvents(ring: Ring): void {
    this.#count(ring, -ring.bytes);
    ring.events = [];
    ring.head = 0;
    ring.shelf.oldestKept = ring.newer;
  }

  #count(ring: Ring, bytes: number): void {
    ring.bytes += bytes;
    ring.shelf.bytes += bytes;
    this.#total += bytes;
  }

  #shelfOf(owner: string | undefined): Shelf {
    const known = this.#shelves.get(owner);
    if (known !== undefined) return known;
    const shelf: Shelf = {
      owner,
      bytes: 0,
      streams: 0,
      oldest: undefined,
      newest: undefined,
      oldestKept: undefined,
    };
    this.#shelves.set(owner, shelf);
    return shelf;
  }
}

function unlink(ring: Ring): void {
  const { shelf } = ring;
  if (ring === shelf.oldestKept) shelf.oldestKept = ring.newer;
  if (ring.older === undefined) shelf.oldest = ring.newer;
  else ring.older.newer = ring.newer;
  if (ring.newer === undefined) shelf.newest = ring.older;
  else ring.newer.older = ring.older;
  ring.older = undefined;
  ring.newer = undefined;
}

function linkAsNewest(ring: Ring): void {
  const { shelf } = ring;
  ring.older = shelf.newest;
  if (shelf.newest === undefined) shelf.oldest = ring;
  else shelf.newest.newer = ring;
  shelf.newest = ring;
  shelf.oldestKept ??= ring;
}

/** The stream an event id names. */
export function streamOf(eventId: string): string {
  return eventId.slice(0, Math.max(0, eventId.lastIndexOf(":")));
}

function sizeOf({ id, data }: StoredEvent): number {
  return id.length + data.length;
}
