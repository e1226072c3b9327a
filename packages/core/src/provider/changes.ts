import type { OldChange } from "./old.ts";
import type { Change } from "./provider.ts";

/** Where changes are reported and listened to. */
export interface ChangeSource<C = OldChange> {
  /** Reports a change, soon: several of one kind in the same turn of the event loop are reported once. */
  report(change: C): void;
  onChange(listener: (change: C) => void): () => void;
}

/** A source of changes of lists, without listeners. */
export function createChanges(): ChangeSource<Change> {
  return createSource(({ part, origin, isFor }) => JSON.stringify([part, origin, isFor && numberOf(isFor)]));
}

/** A source of changes without listeners. */
export function createChangeSource(): ChangeSource {
  return createSource((change) => {
    const { kind, origin, connection } = change;
    const uri = kind === "resource" ? change.uri : undefined;
    return JSON.stringify([kind, uri, origin, connection && numberOf(connection)]);
  });
}

/** A source without listeners. What has the same key is one. */
export function createSource<C>(keyOf: (change: C) => string): ChangeSource<C> {
  const listeners = new Set<(change: C) => void>();
  const waiting = new Map<string, C>();
  const flush = (): void => {
    const changes = [...waiting.values()];
    waiting.clear();
    for (const change of changes) for (const listener of listeners) listener(change);
  };
  return {
    report: (change) => {
      if (listeners.size === 0) return;
      if (waiting.size === 0) queueMicrotask(flush);
      waiting.set(keyOf(change), change);
    },
    onChange: (listener) => {
      // A function of its own for each listening: one that listens twice must stop twice.
      const heard = (change: C): void => listener(change);
      listeners.add(heard);
      return () => void listeners.delete(heard);
    },
  };
}

const numbers = new WeakMap<object, number>();
let lastNumber = 0;

function numberOf(object: object): number {
  let number = numbers.get(object);
  if (number === undefined) numbers.set(object, (number = ++lastNumber));
  return number;
}
