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
  /** Keeps an event and gives it its id. */
  append(stream: string, data: string): string | Promise<string>;
  /** The events of the same stream after this one; undefined when some of them are no longer kept. */
  after(eventId: string): readonly StoredEvent[] | undefined | Promise<readonly StoredEvent[] | undefined>;
  /** Drops a stream: nothing more is appended to it, and its events are not asked for again. */
  forget(stream: string): void | Promise<void>;
}

export interface MemoryEventStoreOptions {
  /** Most bytes kept of one stream; older events go first. */
  readonly maxStreamBytes?: number;
  /** Most bytes kept in all; the events of the stream that was written to longest ago go first. */
  readonly maxTotalBytes?: number;
  /** Most streams known; the one that was written to longest ago goes first, and can then not be resumed. */
  readonly maxStreams?: number;
}

/** The kept events of one stream. */
interface Ring {
  readonly stream: string;
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

/** Events in the memory of this process, bounded. Each append takes the same time, also at the limits. */
export function createMemoryEventStore(options: MemoryEventStoreOptions = {}): EventStore {
  const { maxStreamBytes = 1024 * 1024, maxTotalBytes = 64 * 1024 * 1024, maxStreams = 100_000 } = options;
  const rings = new Map<string, Ring>();
  // The order is a list of its own: to find the first entry of a map, V8 walks past all that were deleted before it.
  let oldest: Ring | undefined;
  let newest: Ring | undefined;
  /** The oldest that has events; all before it lost theirs, and still count. */
  let oldestKept: Ring | undefined;
  /** Where a stream that is not known begins: beyond every number of one that was dropped, for it may be that one. */
  let start = 0;
  let total = 0;

  const unlink = (ring: Ring): void => {
    if (ring === oldestKept) oldestKept = ring.newer;
    if (ring.older === undefined) oldest = ring.newer;
    else ring.older.newer = ring.newer;
    if (ring.newer === undefined) newest = ring.older;
    else ring.newer.older = ring.older;
    ring.older = undefined;
    ring.newer = undefined;
  };
  const linkAsNewest = (ring: Ring): void => {
    ring.older = newest;
    if (newest === undefined) oldest = ring;
    else newest.newer = ring;
    newest = ring;
    oldestKept ??= ring;
  };
  const dropEvent = (ring: Ring): void => {
    const bytes = sizeOf(ring.events[ring.head++] as StoredEvent);
    ring.bytes -= bytes;
    total -= bytes;
    if (2 * ring.head < ring.events.length) return;
    ring.events = ring.events.slice(ring.head);
    ring.head = 0;
  };
  /** The count goes on, so that no id is given twice: one that is read later must not name another event. */
  const dropEvents = (ring: Ring): void => {
    total -= ring.bytes;
    ring.bytes = 0;
    ring.events = [];
    ring.head = 0;
    oldestKept = ring.newer;
  };
  const dropStream = (ring: Ring): void => {
    total -= ring.bytes;
    unlink(ring);
    // The map may hold on to it for a while; see `Numbered`.
    ring.events = [];
    rings.delete(ring.stream);
  };
  const isFull = (): boolean => total > maxTotalBytes;
  const makeRoom = (written: Ring): void => {
    for (let ring = oldestKept; ring !== undefined && ring !== written && isFull(); ring = oldestKept)
      dropEvents(ring);
    for (
      let ring = oldest;
      ring !== undefined && ring !== written && rings.size > maxStreams;
      ring = oldest
    ) {
      start = Math.max(start, ring.next);
      dropStream(ring);
    }
  };

  return {
    append: (stream, data) => {
      let ring = rings.get(stream);
      if (ring === undefined) {
        ring = { stream, events: [], head: 0, next: start, bytes: 0, older: undefined, newer: undefined };
        rings.set(stream, ring);
      } else unlink(ring);
      linkAsNewest(ring);
      const event = { id: `${stream}:${ring.next++}`, data };
      ring.events.push(event);
      ring.bytes += sizeOf(event);
      total += sizeOf(event);
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
