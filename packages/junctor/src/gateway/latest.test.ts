import { expect, test } from "vitest";
import { toProvider } from "../../../../test/support/use-provider.ts";
import { createDeferred } from "../../../core/src/async/queue.ts";
import { NotFoundError } from "../../../core/src/errors/index.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import type { Change, Notice, Provider } from "../../../core/src/provider/provider.ts";
import { createLatest } from "./entrances.ts";

const uri = "note:a";
const target = { part: "resources", name: uri, ref: undefined } as const;
const updated: Notice = { kind: "updated", uri };
const noCall = (): never => {
  throw new Error("nothing is called here");
};

/** Counts watches and listeners, for all providers that are made of it. */
class Source {
  readonly watchers = new Set<(notice: Notice) => void>();
  readonly listeners = new Set<(change: Change) => void>();
  fewestWatchers = Infinity;

  /** A provider that lets callers watch once `admission` resolves. */
  provider(admission?: Promise<void>): Provider {
    return toProvider([], noCall, {
      watch: (_, __, listener) => {
        const begin = (): (() => void) => {
          const hear = (notice: Notice): void => listener(notice);
          this.watchers.add(hear);
          return () => {
            this.watchers.delete(hear);
            this.fewestWatchers = Math.min(this.fewestWatchers, this.watchers.size);
          };
        };
        return admission === undefined ? begin() : admission.then(begin);
      },
      onChange: (listener) => {
        this.listeners.add(listener);
        return () => void this.listeners.delete(listener);
      },
    });
  }

  notify(): void {
    const watchers = [...this.watchers];
    for (const watcher of watchers) watcher(updated);
  }
}

function start(source: Source) {
  let current = source.provider();
  const latest = createLatest(() => current);
  const heard: Notice[] = [];
  return {
    latest,
    heard,
    watch: async () => latest.provider.watch?.(target, createCallContext(), (notice) => heard.push(notice)),
    swap: (next: Provider) => {
      current = next;
      latest.follow();
    },
  };
}

const refused = Promise.reject(new NotFoundError("resource", uri));
refused.catch(() => {});

test("a watch begins at the next provider before it ends at the last", async () => {
  const source = new Source();
  const { watch, swap, heard } = start(source);
  const stop = await watch();
  for (const admission of [undefined, Promise.resolve(), undefined]) {
    swap(source.provider(admission));
    await expect.poll(() => source.watchers.size).toBe(1);
    source.notify();
  }
  expect(source.fewestWatchers).toBe(1);
  expect(heard).toEqual([updated, updated, updated]);
  stop?.();
  expect(source.watchers.size).toBe(0);
});

test("notices that come while a watch moves are delivered once the next provider accepts it", async () => {
  const source = new Source();
  const { watch, swap, heard } = start(source);
  await watch();
  const admission = createDeferred<void>();
  swap(source.provider(admission.promise));
  source.notify();
  expect(heard).toEqual([]);
  admission.resolve();
  await expect.poll(() => heard).toEqual([updated]);
});

test("a caller that may no longer watch gets no notices, until it may again", async () => {
  const source = new Source();
  const { watch, swap, heard } = start(source);
  await watch();
  swap(source.provider(refused));
  source.notify();
  await expect.poll(() => source.watchers.size).toBe(0);
  expect(heard).toEqual([]);
  swap(source.provider());
  source.notify();
  expect(heard).toEqual([updated]);
});

test("of several swaps at once the last one counts", async () => {
  const source = new Source();
  const { watch, swap, heard } = start(source);
  await watch();
  const slow = createDeferred<void>();
  swap(source.provider(slow.promise));
  swap(source.provider(refused));
  swap(source.provider());
  slow.resolve();
  await expect.poll(() => source.watchers.size).toBe(1);
  source.notify();
  expect(heard).toEqual([updated]);
  expect(source.fewestWatchers).toBe(1);
});

test("a watch that is stopped, or whose caller is gone, does not come back with a swap", async () => {
  const source = new Source();
  const { latest, watch, swap } = start(source);
  const slow = createDeferred<void>();
  const stop = await watch();
  swap(source.provider(slow.promise));
  stop?.();
  slow.resolve();
  swap(source.provider());
  await expect.poll(() => source.watchers.size).toBe(0);
  const caller = new AbortController();
  await latest.provider.watch?.(target, createCallContext({ signal: caller.signal }), () => {});
  caller.abort();
  swap(source.provider());
  expect(source.watchers.size).toBe(0);
});

test("a watch that is refused at first is not begun by a swap", async () => {
  const source = new Source();
  const { latest, swap } = start(source);
  swap(source.provider(refused));
  const watch = latest.provider.watch?.(target, createCallContext(), () => {});
  await expect(watch).rejects.toThrow("not found");
  swap(source.provider());
  expect(source.watchers.size).toBe(0);
});

test("a listener gets the changes of the current provider alone", () => {
  const [first, second] = [new Source(), new Source()];
  const { latest, swap } = start(first);
  const heard: Change[] = [];
  const stop = latest.provider.onChange?.((change) => heard.push(change));
  swap(second.provider());
  expect([first.listeners.size, second.listeners.size]).toEqual([0, 1]);
  for (const listener of second.listeners) listener({ part: "tools" });
  expect(heard).toEqual([{ part: "tools" }]);
  stop?.();
  expect(second.listeners.size).toBe(0);
});
