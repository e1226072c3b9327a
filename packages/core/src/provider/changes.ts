import type { CallContext } from "./context.ts";
import type { Change, Notice } from "./provider.ts";

/** Where changes are reported and listened to. */
export interface ChangeSource<C> {
  /** Reports a change soon: several of one kind in the same turn of the event loop are reported once. */
  report(change: C): void;
  onChange(listener: (change: C) => void): () => void;
}

/** A source of changes of lists, without listeners. */
export function createChanges(): ChangeSource<Change> {
  return createSource(({ part, origin, isFor }) => JSON.stringify([part, origin, isFor && numberOf(isFor)]));
}

/** A source without listeners. Changes with the same key are reported as one. */
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
      // A new function for each registration: a listener that was added twice is removed twice.
      const registered = (change: C): void => listener(change);
      listeners.add(registered);
      return () => void listeners.delete(registered);
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

/** The listeners of each watched resource. */
export interface Watches {
  /**
   * Notifies the listener of updates of a URI, and of what lies below it, until the returned function is
   * called or the call is aborted.
   */
  add(uri: string, context: CallContext, listener: (notice: Notice) => void): () => void;
  /** Reports an update soon: several of one URI in the same turn of the event loop are reported once. */
  report(uri: string): void;
}

/** Watches without listeners. */
export function createWatches(): Watches {
  const watching = new Map<string, Set<(notice: Notice) => void>>();
  const waiting = new Set<string>();
  const flush = (): void => {
    const uris = [...waiting];
    waiting.clear();
    for (const uri of uris)
      for (const level of levelsOf(uri))
        for (const listener of watching.get(level) ?? []) listener({ kind: "updated", uri });
  };
  return {
    add: (uri, { cancellation }, listener) => {
      const listeners = watching.get(uri) ?? new Set();
      watching.set(uri, listeners);
      const registered = (notice: Notice): void => listener(notice);
      const stop = (): void => {
        cancellation?.offAbort(stop);
        listeners.delete(registered);
        if (listeners.size === 0 && watching.get(uri) === listeners) watching.delete(uri);
      };
      listeners.add(registered);
      cancellation?.onAbort(stop);
      return stop;
    },
    report: (uri) => {
      if (watching.size === 0) return;
      if (waiting.size === 0) queueMicrotask(flush);
      waiting.add(uri);
    },
  };
}

/** The most levels of a URI that are looked at: a server may announce one that is nothing but slashes. */
const maxLevels = 64;

/**
 * A URI and its parents, nearest first. They are looked up, because there may be thousands of subscriptions for
 * one change.
 */
export function* levelsOf(uri: string): Generator<string> {
  yield uri;
  let end = uri.lastIndexOf("/");
  for (let level = 0; end > 0 && level < maxLevels; level++, end = uri.lastIndexOf("/", end - 1)) {
    if (end + 1 < uri.length) yield uri.slice(0, end + 1);
    yield uri.slice(0, end);
  }
}
