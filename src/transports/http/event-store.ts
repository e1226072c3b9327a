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
}

interface Ring {
  events: StoredEvent[];
  next: number;
  bytes: number;
}

/** Events in the memory of this process, bounded. */
export function createMemoryEventStore(options: MemoryEventStoreOptions = {}): EventStore {
  const { maxStreamBytes = 1024 * 1024, maxTotalBytes = 64 * 1024 * 1024 } = options;
  const rings = new Map<string, Ring>();
  let total = 0;

  const drop = (ring: Ring): void => {
    const dropped = ring.events.shift();
    const bytes = dropped === undefined ? 0 : sizeOf(dropped);
    ring.bytes -= bytes;
    total -= bytes;
  };
  /** The count goes on, so that no id is given twice: one that is read later must not name another event. */
  const empty = (ring: Ring): void => {
    total -= ring.bytes;
    ring.bytes = 0;
    ring.events = [];
  };

  return {
    append: (stream, data) => {
      const ring = rings.get(stream) ?? { events: [], next: 0, bytes: 0 };
      // Re-inserted, so that the map's order is the order of last writing.
      rings.delete(stream);
      rings.set(stream, ring);
      const event = { id: `${stream}:${ring.next++}`, data };
      ring.events.push(event);
      ring.bytes += sizeOf(event);
      total += sizeOf(event);
      while (ring.bytes > maxStreamBytes && ring.events.length > 1) drop(ring);
      for (const oldest of rings.values()) {
        if (total <= maxTotalBytes || oldest === ring) break;
        empty(oldest);
      }
      return event.id;
    },
    after: (eventId) => {
      const ring = rings.get(streamOf(eventId));
      const digits = eventId.slice(eventId.lastIndexOf(":") + 1);
      const number = Number(digits);
      if (ring === undefined || !/^[0-9]{1,15}$/.test(digits) || number >= ring.next) return undefined;
      const first = ring.next - ring.events.length;
      return number + 1 < first ? undefined : ring.events.slice(number + 1 - first);
    },
    forget: (stream) => {
      total -= rings.get(stream)?.bytes ?? 0;
      rings.delete(stream);
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
