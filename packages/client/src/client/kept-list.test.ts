import { expect, test } from "vitest";
import { createDeferred, type Deferred } from "../../../core/src/async/deferred.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { type Fetched, KeptList } from "./kept-list.ts";

const hints = { ttlMs: 0, cacheScope: "private" } as const;

function create(): {
  list: KeptList<string>;
  fetches: Deferred<Fetched<string>>[];
  clock: ReturnType<typeof createVirtualClock>;
} {
  const clock = createVirtualClock();
  const fetches: Deferred<Fetched<string>>[] = [];
  const list = new KeptList<string>(() => {
    const fetched = createDeferred<Fetched<string>>();
    fetches.push(fetched);
    return fetched.promise;
  }, clock);
  return { list, fetches, clock };
}

test("what is fresh is given without asking, and what is not is fetched", async () => {
  const { list, fetches, clock } = create();
  const first = list.get();
  fetches[0]?.resolve({ items: ["a"], ttlMs: 100, faults: [], hints });
  expect(await first).toEqual(["a"]);
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
  fetches[1]?.resolve({ items: ["new"], ttlMs: 1000, faults: [], hints });
  expect(await quick).toEqual(["new"]);
  fetches[0]?.resolve({ items: ["old"], ttlMs: 1000, faults: [], hints });
  expect(await slow).toEqual(["old"]);
  expect(list.last).toEqual(["new"]);
  expect(await list.get()).toEqual(["new"]);
  expect(fetches).toHaveLength(2);
});

test("what was fetched while it changed is handed out but not kept", async () => {
  const { list, fetches } = create();
  const first = list.get();
  list.invalidate();
  fetches[0]?.resolve({ items: ["old"], ttlMs: 1000, faults: [], hints });
  expect(await first).toEqual(["old"]);
  void list.get();
  expect(fetches).toHaveLength(2);
});

test("a fetch that failed is tried again by the next to ask, and what was known stays known", async () => {
  const { list, fetches } = create();
  const first = list.get();
  fetches[0]?.resolve({ items: ["a"], ttlMs: 0, faults: [], hints });
  await first;
  const second = list.get();
  fetches[1]?.reject(new Error("no"));
  await expect(second).rejects.toThrow("no");
  expect(list.last).toEqual(["a"]);
  void list.get();
  expect(fetches).toHaveLength(3);
});
