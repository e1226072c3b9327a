/** An event that can be sent again. */
export interface StoredEvent {
  readonly id: string;
  readonly data: string;
}

/**
 * Keeps the events of legacy streams, so that a client that lost its connection can have the rest. Ids are
 * `stream:number`, so an id names its stream and its place there.
 */
export interface EventStore {
  /** Keeps an event and gives it its id. `owner` is whose share of the store it counts towards. */
  append(stream: string, data: string, owner?: string): string | Promise<string>;
  /** The events of the same stream after this one; undefined when some of them are no longer kept. */
  after(eventId: string): readonly StoredEvent[] | undefined | Promise<readonly StoredEvent[] | undefined>;
  /** Drops a stream: nothing more is appended to it, and its events are not asked for again. */
  forget(stream: string): void | Promise<void>;
}

export interface MemoryEventStoreOptions {
  /** Most bytes kept of one stream; older events go first. */
  readonly maxStreamBytes?: number;
  /**
   * Most bytes kept in all; the events of the owner with most go first, those of its stream that was written to longest ago
   * before the others.
   */
  readonly maxTotalBytes?: number;
  /** Most streams known; one goes by the same rule, and can then not be resumed. */
  readonly maxStreams?: number;
}

/** The kept events of one stream. */
interface Ring {
  readonly stream: string;
  readonly shelf: Shelf;
  /** Those before `head` are dropped; they are taken out when they are half of them. */
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
  // The order is a list of its own: to find the first entry of a map, V8 walks past all that were deleted before it.
  oldest: Ring | undefined;
  newest: Ring | undefined;
  /** The oldest that has events; all before it lost theirs, and still count. */
  oldestKept: Ring | undefined;
}

/** Events in the memory of this process, bounded. Each append takes the same time, also at the limits. */
export function createMemoryEventStore(options: MemoryEventStoreOptions = {}): EventStore {
  const { maxStreamBytes = 1024 * 1024, maxTotalBytes = 64 * 1024 * 1024, maxStreams = 100_000 } = options;
  const rings = new Map<string, Ring>();
  const shelves = new Map<string | undefined, Shelf>();
  /** Where a stream that is not known begins: beyond every number of one that was dropped, for it may be that one. */
  let start = 0;
  let total = 0;

  const shelfOf = (owner: string | undefined): Shelf => {
    const known = shelves.get(owner);
    if (known !== undefined) return known;
    const shelf: Shelf = {
      owner,
      bytes: 0,
      streams: 0,
      oldest: undefined,
      newest: undefined,
      oldestKept: undefined,
    };
    shelves.set(owner, shelf);
    return shelf;
  };
  const unlink = (ring: Ring): void => {
    const { shelf } = ring;
    if (ring === shelf.oldestKept) shelf.oldestKept = ring.newer;
    if (ring.older === undefined) shelf.oldest = ring.newer;
    else ring.older.newer = ring.newer;
    if (ring.newer === undefined) shelf.newest = ring.older;
    else ring.newer.older = ring.older;
    ring.older = undefined;
    ring.newer = undefined;
  };
  const linkAsNewest = (ring: Ring): void => {
    const { shelf } = ring;
    ring.older = shelf.newest;
    if (shelf.newest === undefined) shelf.oldest = ring;
    else shelf.newest.newer = ring;
    shelf.newest = ring;
    shelf.oldestKept ??= ring;
  };
  const count = (ring: Ring, bytes: number): void => {
    ring.bytes += bytes;
    ring.shelf.bytes += bytes;
    total += bytes;
  };
  const dropEvent = (ring: Ring): void => {
    count(ring, -sizeOf(ring.events[ring.head++] as StoredEvent));
    if (2 * ring.head < ring.events.length) return;
    ring.events = ring.events.slice(ring.head);
    ring.head = 0;
  };
  /** `next` is kept, so that no id is given twice: a client may still come back with an id of a dropped event. */
  const dropEvents = (ring: Ring): void => {
    count(ring, -ring.bytes);
    ring.events = [];
    ring.head = 0;
    ring.shelf.oldestKept = ring.newer;
  };
  const dropStream = (ring: Ring): void => {
    count(ring, -ring.bytes);
    unlink(ring);
    // The map may hold on to it for a while; see `Numbered`.
    ring.events = [];
    rings.delete(ring.stream);
    if (--ring.shelf.streams === 0) shelves.delete(ring.shelf.owner);
  };
  /** The stream that goes next: of the owner with most bytes or streams. The one that was just written to stays. */
  const nextToGo = (
    which: "oldestKept" | "oldest",
    by: "bytes" | "streams",
    written: Ring,
  ): Ring | undefined => {
    let most: Shelf | undefined;
    for (const shelf of shelves.values()) {
      const isCandidate = shelf[which] !== undefined && shelf[which] !== written;
      if (isCandidate && (most === undefined || shelf[by] > most[by])) most = shelf;
    }
    return most?.[which];
  };
  const isFull = (): boolean => total > maxTotalBytes;
  const makeRoom = (written: Ring): void => {
    while (isFull()) {
      const ring = nextToGo("oldestKept", "bytes", written);
      if (ring === undefined) break;
      dropEvents(ring);
    }
    while (rings.size > maxStreams) {
      const ring = nextToGo("oldest", "streams", written);
      if (ring === undefined) break;
      start = Math.max(start, ring.next);
      dropStream(ring);
    }
  };
  return {
    append: (stream, data, owner) => {
      let ring = rings.get(stream);
      if (ring === undefined) {
        const shelf = shelfOf(owner);
        shelf.streams++;
        ring = {
          stream,
          shelf,
          events: [],
          head: 0,
          next: start,
          bytes: 0,
          older: undefined,
          newer: undefined,
        };
        rings.set(stream, ring);
      } else unlink(ring);
      linkAsNewest(ring);
      const event = { id: `${stream}:${ring.next++}`, data };
      ring.events.push(event);
      count(ring, sizeOf(event));
      while (ring.bytes > maxStreamBytes && ring.events.length - ring.head > 1) dropEvent(ring);
      makeRoom(ring);
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
      if (ring !== undefined) dropStream(ring);
    },
  };
}

/** The stream an event id names. */
export function streamOf(eventId: string): string {
  return eventId.slice(0, Math.max(0, eventId.lastIndexOf(":")));
}

function sizeOf({ id, data }: StoredEvent): number {
  return id.length + data.length;
}
