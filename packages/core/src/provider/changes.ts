import type { OldChange } from "./old.ts";

/** Where changes are reported and listened to. */
export interface ChangeSource {
  /** Reports a change, soon: several of one kind in the same turn of the event loop are reported once. */
  report(change: OldChange): void;
  onChange(listener: (change: OldChange) => void): () => void;
}

/** A source of changes without listeners. */
export function createChangeSource(): ChangeSource {
  const listeners = new Set<(change: OldChange) => void>();
  const waiting = new Map<string, OldChange>();
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
      const heard = (change: OldChange): void => listener(change);
      listeners.add(heard);
      return () => void listeners.delete(heard);
    },
  };
}

const connections = new WeakMap<object, number>();
let lastConnection = 0;

/** Changes with the same key are one. */
function keyOf(change: OldChange): string {
  const { kind, origin, connection } = change;
  if (connection !== undefined && !connections.has(connection)) connections.set(connection, ++lastConnection);
  const uri = kind === "resource" ? change.uri : undefined;
  return JSON.stringify([kind, uri, origin, connection && connections.get(connection)]);
}
