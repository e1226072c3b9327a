import { expect, test } from "vitest";
import { turn } from "../../../test/support/fake-client.ts";
import { createDeferred } from "../../async/deferred.ts";
import { createVirtualClock, type VirtualClock } from "../../testing/virtual-clock.ts";
import type { Line } from "./line.ts";
import type { ListKeeper } from "./list-keeper.ts";
import { Variants, type VariantsOptions } from "./variants.ts";

interface Made {
  readonly variants: Variants;
  readonly clock: VirtualClock;
  /** What happened to the lines, by key. */
  readonly events: string[];
}

function make(options: Partial<VariantsOptions> = {}): Made {
  const clock = createVirtualClock();
  const events: string[] = [];
  const create: VariantsOptions["create"] = (key) => {
    events.push(`${key} made`);
    const line = {
      rest: async () => void events.push(`${key} rests`),
      [Symbol.asyncDispose]: async () => {
        await turn();
        await turn();
        events.push(`${key} closed`);
      },
    };
    return {
      line: line as unknown as Line,
      lists: {} as ListKeeper,
      isOutdated: true,
      listed: createDeferred(),
      isWaitedFor: false,
    };
  };
  return {
    variants: new Variants({ create, clock, idleMs: 1000, maxVariants: 2, ...options }),
    clock,
    events,
  };
}

test("callers of one kind share a line, and it is made when the first comes", () => {
  const { variants, events } = make();
  expect(variants.find("a")).toBeUndefined();
  const one = variants.use("a");
  expect(variants.use("a").variant).toBe(one.variant);
  expect(variants.find("a")).toBe(one.variant);
  expect(events).toEqual(["a made"]);
});

test("one that nobody uses for a while rests, and stays known", async () => {
  const { variants, clock, events } = make();
  const [one, two] = [variants.use("a"), variants.use("a")];
  one.release();
  one.release();
  await clock.advance(5000);
  two.release();
  await clock.advance(999);
  expect(events).toEqual(["a made"]);
  await clock.advance(1);
  expect(events).toEqual(["a made", "a rests"]);
  expect(variants.use("a").variant).toBe(one.variant);
  expect(clock.sleeping).toBe(0);
});

test("one that is used again does not rest", async () => {
  const { variants, clock, events } = make();
  variants.use("a").release();
  await clock.advance(900);
  variants.use("a");
  await clock.advance(10_000);
  expect(events).toEqual(["a made"]);
});

test("at the limit the one not seen for longest is forgotten", async () => {
  const { variants, events } = make();
  for (const key of ["a", "b", "a", "c"]) variants.use(key).release();
  await expect.poll(() => events).toEqual(["a made", "b made", "c made", "b closed"]);
  expect(variants.find("a")).toBeDefined();
});

test("one that is used is not forgotten", async () => {
  const { variants, events, clock } = make();
  const inUse = [variants.use("a"), variants.use("b")];
  variants.use("c");
  await turn();
  expect(events).toEqual(["a made", "b made", "c made"]);
  for (const { release } of inUse) release();
  variants.use("d");
  await expect
    .poll(() => events.filter((event) => event.endsWith("closed")))
    .toEqual(["a closed", "b closed"]);
  expect(clock.sleeping).toBe(0);
});

test("disposing closes all, also those forgotten before, and what is given back later leaves no timer", async () => {
  const { variants, events, clock } = make({ maxVariants: 1 });
  variants.use("a").release();
  const late = variants.use("b");
  await variants[Symbol.asyncDispose]();
  expect(events.toSorted()).toEqual(["a closed", "a made", "b closed", "b made"]);
  late.release();
  expect(clock.sleeping).toBe(0);
});

test("whoever comes after the end gets one that is over", async () => {
  const { variants, events, clock } = make();
  await variants[Symbol.asyncDispose]();
  variants.use("a").release();
  await variants[Symbol.asyncDispose]();
  expect(events).toEqual(["a made", "a closed"]);
  expect(variants.find("a")).toBeUndefined();
  expect(clock.sleeping).toBe(0);
});
