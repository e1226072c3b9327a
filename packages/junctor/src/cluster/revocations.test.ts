import { expect, test } from "vitest";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { createMemoryClusterStore } from "./memory-store.ts";
import { SharedRevocations } from "./revocations.ts";
import type { ClusterStore } from "./store.ts";

/** A replica that hears news only while it is connected. */
interface Listener {
  readonly revocations: SharedRevocations;
  readonly seen: string[];
  readonly warnings: string[];
  isDeaf: boolean;
  isCut: boolean;
}

function listen(engine: ClusterStore, clock: VirtualClock): Listener {
  const [seen, warnings]: [string[], string[]] = [[], []];
  const reach = <T>(operation: () => Promise<T>): Promise<T> =>
    listener.isCut ? Promise.reject(new Error("no engine")) : operation();
  const store: ClusterStore = {
    ...engine,
    read: (key) => reach(() => engine.read(key)),
    write: (key, value, ttlMs) => reach(() => engine.write(key, value, ttlMs)),
    publish: (news) => reach(() => engine.publish(news)),
    onNews: (tell) => engine.onNews((news) => void (listener.isDeaf || listener.isCut || tell(news))),
  };
  const listener: Listener = {
    seen,
    warnings,
    isDeaf: false,
    isCut: false,
    revocations: new SharedRevocations({
      store: {
        ...store,
        read: (key) => Promise.resolve().then(() => store.read(key)),
      },
      clock,
      onChange: (caller, isRevoked) => seen.push(`${isRevoked ? "-" : "+"}${caller}`),
      onWarning: (text) => warnings.push(text),
    }),
  };
  return listener;
}

function setUp(): {
  readonly clock: VirtualClock;
  readonly engine: ClusterStore;
  readonly join: () => Listener;
} {
  const clock = createVirtualClock(1_000_000);
  const engine = createMemoryClusterStore({ clock });
  return { clock, engine, join: () => listen(engine, clock) };
}

test("a caller that is revoked at one replica is revoked at the others at once, and let in again too", async () => {
  const { join } = setUp();
  const [a, b, c] = [join(), join(), join()];
  await a.revocations.change("ada", true);
  await b.revocations.change("ada", false);
  expect([a.seen, b.seen, c.seen]).toEqual([["+ada"], ["-ada"], ["-ada", "+ada"]]);
});

test("a replica that missed the news sees it within 3 s, and one that starts later at its start", async () => {
  const { clock, join } = setUp();
  const [a, b] = [join(), join()];
  await clock.advance(0);
  b.isDeaf = true;
  await a.revocations.change("ada", true);
  await a.revocations.change("constructor", true);
  expect(b.seen).toEqual([]);
  await clock.advance(3000);
  expect(b.seen.toSorted()).toEqual(["-ada", "-constructor"]);
  const late = join();
  await clock.advance(0);
  expect(late.seen.toSorted()).toEqual(["-ada", "-constructor"]);
});

test("what was revoked while the store could not be reached is shared when it can", async () => {
  const { clock, join } = setUp();
  const [a, b] = [join(), join()];
  await clock.advance(0);
  a.isCut = true;
  await a.revocations.change("ada", true);
  await clock.advance(9000);
  expect([b.seen, a.warnings]).toEqual([[], ["revoked callers cannot be compared with other replicas"]]);
  a.isCut = false;
  await clock.advance(6000);
  expect(b.seen).toEqual(["-ada"]);
});

test("an engine that lost everything gets it again, and two that change at once both count", async () => {
  const { clock, engine, join } = setUp();
  const [a, b] = [join(), join()];
  await clock.advance(0);
  await Promise.all([a.revocations.change("ada", true), b.revocations.change("bob", true)]);
  await clock.advance(3000);
  expect([a.seen, b.seen]).toEqual([["-bob"], ["-ada"]]);
  for (const key of ["revoked", ...Array.from({ length: 64 }, (_, slot) => `revoked:${slot}`)])
    await engine.release(key, (await engine.read(key)) ?? "");
  await clock.advance(3000);
  const late = join();
  await clock.advance(0);
  expect(late.seen.toSorted()).toEqual(["-ada", "-bob"]);
});

test("a replica whose clock is behind can let a caller in again", async () => {
  const { clock, engine, join } = setUp();
  const a = join();
  const behind = listen(engine, { ...clock, date: () => 5 });
  await a.revocations.change("ada", true);
  await behind.revocations.change("ada", false);
  expect(a.seen).toEqual(["+ada"]);
});

test("a quiet replica makes one operation every 3 s, and none when it is over", async () => {
  const { clock, engine } = setUp();
  let reads = 0;
  const store: ClusterStore = {
    ...engine,
    read: (key) => {
      reads += 1;
      return engine.read(key);
    },
  };
  const revocations = new SharedRevocations({ store, clock, onChange: () => {} });
  await clock.advance(30_000);
  expect(reads).toBe(11);
  revocations[Symbol.dispose]();
  await clock.advance(30_000);
  expect([reads, clock.sleeping]).toEqual([11, 0]);
});

test("news and values that make no sense are left out", async () => {
  const { clock, engine, join } = setUp();
  const a = join();
  await engine.write("revoked:0", '{"x":1,"y":["no"],"z":[1,2.5],"eve":[1,7]}', 60_000);
  await engine.write("revoked:1", "[[", 60_000);
  await engine.write("revoked", "other", 60_000);
  for (const news of [
    "",
    "null",
    '{"kind":"revocation"}',
    '{"kind":"revocation","caller":1,"isRevoked":true,"at":1}',
  ])
    await engine.publish(news);
  await clock.advance(3000);
  expect(a.seen).toEqual(["-eve"]);
});
