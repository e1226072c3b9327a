import { expect, test } from "vitest";
import { createDeferred, type Deferred } from "../../../core/src/async/queue.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { type Fetched, KeptList } from "./lists.ts";

interface Named {
  readonly name: string;
}

const hints = { ttlMs: 0, cacheScope: "private" } as const;

function create(): {
  list: KeptList<Named>;
  fetches: Deferred<Fetched<Named>>[];
  clock: ReturnType<typeof createVirtualClock>;
} {
  const clock = createVirtualClock();
  const fetches: Deferred<Fetched<Named>>[] = [];
  const list = new KeptList<Named>(() => {
    const fetched = createDeferred<Fetched<Named>>();
    fetches.push(fetched);
    return fetched.promise;
  }, clock);
  return { list, fetches, clock };
}

test("what is fresh is given without asking, and what is not is fetched", async () => {
  const { list, fetches, clock } = create();
  const first = list.get();
  fetches[0]?.resolve({ items: [{ name: "a" }], ttlMs: 100, faults: [], hints });
  expect((await first).items).toEqual([{ name: "a" }]);
  expect(await list.get()).toBe(await first);
  await clock.advance(100);
  void list.get();
  expect(fetches).toHaveLength(2);
});

test("a slow fetch does not replace what was fetched after it was outdated", async () => {
  const { list, fetches } = create();
  const slow = list.get();
  list.invalidate();
  const quick = list.get();
  fetches[1]?.resolve({ items: [{ name: "new" }], ttlMs: 1000, faults: [], hints });
  expect((await quick).items).toEqual([{ name: "new" }]);
  fetches[0]?.resolve({ items: [{ name: "old" }], ttlMs: 1000, faults: [], hints });
  expect((await slow).items).toEqual([{ name: "old" }]);
  expect(list.last?.items).toEqual([{ name: "new" }]);
  expect((await list.get()).items).toEqual([{ name: "new" }]);
  expect(fetches).toHaveLength(2);
});

test("what was fetched while it changed is handed out but not kept", async () => {
  const { list, fetches } = create();
  const first = list.get();
  list.invalidate();
  fetches[0]?.resolve({ items: [{ name: "old" }], ttlMs: 1000, faults: [], hints });
  expect((await first).items).toEqual([{ name: "old" }]);
  void list.get();
  expect(fetches).toHaveLength(2);
});

test("a fetch that failed is tried again by the next to ask, and what was known stays known", async () => {
  const { list, fetches } = create();
  const first = list.get();
  fetches[0]?.resolve({ items: [{ name: "a" }], ttlMs: 0, faults: [], hints });
  await first;
  const second = list.get();
  fetches[1]?.reject(new Error("no"));
  await expect(second).rejects.toThrow("no");
  expect(list.last?.items).toEqual([{ name: "a" }]);
  void list.get();
  expect(fetches).toHaveLength(3);
});
