import { expect, test, vi } from "vitest";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { type HeldLease, joinCluster, type JoinOptions, type Membership } from "./membership.ts";
import { createMemoryClusterStore } from "./memory-store.ts";
import type { ClusterStore } from "./store.ts";

const address = { kind: "socket", path: "/tmp/a.sock" } as const;

/** A store whose operations fail or hang as a test wants. */
function createUnreliable(
  engine: ClusterStore,
): ClusterStore & { trouble: "none" | "fails" | "hangs"; calls: string[] } {
  const store = { ...engine, trouble: "none" as "none" | "fails" | "hangs", calls: [] as string[] };
  const wrap =
    <Args extends unknown[], T>(name: string, operation: (...args: Args) => Promise<T>) =>
    (...args: Args): Promise<T> => {
      store.calls.push(name);
      if (store.trouble === "hangs") return new Promise(() => {});
      if (store.trouble === "fails") return Promise.reject(new Error("no engine"));
      return operation(...args);
    };
  store.claim = wrap("claim", engine.claim);
  store.renew = wrap("renew", engine.renew);
  store.release = wrap("release", engine.release);
  store.register = wrap("register", engine.register);
  store.unregister = wrap("unregister", engine.unregister);
  return store;
}

interface Joined {
  readonly clock: VirtualClock;
  readonly engine: ClusterStore;
  readonly store: ReturnType<typeof createUnreliable>;
  readonly member: Membership;
  readonly warnings: string[];
  join(more?: Partial<JoinOptions>): Promise<Membership>;
}

async function setUp(): Promise<Joined> {
  const clock = createVirtualClock();
  const engine = createMemoryClusterStore({ clock });
  const store = createUnreliable(engine);
  const warnings: string[] = [];
  const onWarning = (text: string): void => void warnings.push(text);
  const join = (more: Partial<JoinOptions> = {}): Promise<Membership> =>
    joinCluster({ store: engine, address, version: "1.0.0", clock, onWarning, ...more });
  return { clock, engine, store, warnings, join, member: await join({ store }) };
}

function toLease(held: HeldLease | { readonly holder: string }): HeldLease {
  if ("release" in held) return held;
  throw new Error(`The lease belongs to ${held.holder}`);
}

test("a member is in, has a random id, and knows the others from the next renewal on", async () => {
  const { clock, member, join } = await setUp();
  await using other = await join({
    address: { kind: "tls", host: "10.0.0.2", port: 7781 },
    version: "1.1.0",
  });
  expect(member.isIn).toBe(true);
  expect(member.id).toMatch(/^[0-9a-f]{12}$/u);
  expect(member.id).not.toBe(other.id);
  expect(member.others).toEqual([]);
  await clock.advance(3000);
  expect(member.others).toEqual([
    {
      id: other.id,
      address: { kind: "tls", host: "10.0.0.2", port: 7781 },
      version: "1.1.0",
      isDraining: false,
    },
  ]);
  const drained = other.drain();
  await clock.advance(250);
  await drained;
  await clock.advance(3000);
  expect(member.others[0]?.isDraining).toBe(true);
  await other[Symbol.asyncDispose]();
  await clock.advance(3000);
  expect(member.others).toEqual([]);
});

test("a membership is refused when the store cannot be reached at the start", async () => {
  const { store, join } = await setUp();
  store.trouble = "fails";
  await expect(join({ store })).rejects.toThrow("no engine");
});

test("one of two members gets a lease, and the other when it is given back", async () => {
  const { member, join } = await setUp();
  const other = await join();
  const held = toLease(await member.hold("own:files", () => {}));
  expect(await other.hold("own:files", () => {})).toEqual({ holder: member.id });
  expect(await member.hold("own:files", () => {})).toEqual({ holder: member.id });
  await held.release();
  await held.release();
  toLease(await other.hold("own:files", () => {}));
  expect(await member.hold("own:files", () => {})).toEqual({ holder: other.id });
});

test("two holds of one key at once in a process give one lease", async () => {
  const { member } = await setUp();
  const holds = await Promise.all([member.hold("k", () => {}), member.hold("k", () => {})]);
  expect(holds.filter((held) => "release" in held)).toHaveLength(1);
});

test("a lease that is given back and taken at once is not lost to the late release", async () => {
  const { member, join } = await setUp();
  const other = await join();
  const held = toLease(await member.hold("k", () => {}));
  const released = held.release();
  const again = member.hold("k", () => {});
  await released;
  toLease(await again);
  expect(await other.hold("k", () => {})).toEqual({ holder: member.id });
});

test("leases live for as long as their member, in one round of operations every 3 s", async () => {
  const { clock, member, store, join } = await setUp();
  const onLost = vi.fn<() => void>();
  for (let number = 0; number < 1500; number++) await member.hold(`home:${number}`, onLost);
  store.calls.length = 0;
  await clock.advance(30_000);
  expect(store.calls).toHaveLength(30);
  expect(store.calls.filter((name) => name === "register")).toHaveLength(10);
  const other = await join();
  expect(await other.hold("home:1499", () => {})).toEqual({ holder: member.id });
  expect(onLost).not.toHaveBeenCalled();
});

test.each(["fails", "hangs"] as const)(
  "a store that %s puts a member out after 7 s, and back in later",
  async (trouble) => {
    const { clock, member, store, warnings } = await setUp();
    const onLost = vi.fn<() => void>();
    const changes: boolean[] = [];
    member.onIn((isIn) => changes.push(isIn));
    await member.hold("own:files", onLost);
    await clock.advance(3000);
    store.trouble = trouble;
    await clock.advance(6999);
    expect([member.isIn, onLost.mock.calls.length]).toEqual([true, 0]);
    await clock.advance(1);
    expect([onLost.mock.calls.length, changes, member.isIn]).toEqual([1, [false], false]);
    await expect(member.hold("own:files", () => {})).rejects.toMatchObject({ code: "store.unreachable" });
    store.trouble = "none";
    await clock.advance(6000);
    expect([member.isIn, changes]).toEqual([true, [false, true]]);
    expect(warnings).toEqual(["the store cannot be reached", "the store is reached again"]);
    toLease(await member.hold("own:files", onLost));
    expect(onLost).toHaveBeenCalledTimes(1);
  },
);

test("a process that was stopped knows that it is out before it does anything with a lease", async () => {
  const { clock, engine } = await setUp();
  let isStopped = false;
  const member = await joinCluster({
    store: engine,
    address,
    version: "1",
    // While it is stopped, no timer fires; when it goes on, a request may be served before any timer.
    clock: { ...clock, timer: (ms, fire) => clock.timer(ms, () => void (isStopped || fire())) },
  });
  const seen: string[] = [];
  await member.hold("own:files", () => seen.push("lost"));
  member.onIn((isIn) => seen.push(`in: ${isIn}`));
  isStopped = true;
  await clock.advance(20_000);
  expect(seen).toEqual([]);
  expect(member.isIn).toBe(false);
  expect(seen).toEqual(["lost", "in: false"]);
});

test("a lease that another has by now is lost, and only that", async () => {
  const { clock, engine, member } = await setUp();
  const lost: string[] = [];
  await member.hold("own:a", () => lost.push("a"));
  await member.hold("own:b", () => lost.push("b"));
  await engine.write("own:a", "someone else", 10_000);
  await clock.advance(3000);
  expect(lost).toEqual(["a"]);
  expect(member.isIn).toBe(true);
});

test("an engine that lost everything gets registration and leases again", async () => {
  const { clock, engine, member, join } = await setUp();
  const onLost = vi.fn<() => void>();
  await member.hold("own:a", onLost);
  await engine.release("own:a", member.id);
  await engine.unregister(member.id);
  await clock.advance(3000);
  const other = await join();
  expect(other.others.map(({ id }) => id)).toEqual([member.id]);
  expect(await other.hold("own:a", () => {})).toEqual({ holder: member.id });
  expect(onLost).not.toHaveBeenCalled();
});

test("an onLost that throws does not keep the others from being called", async () => {
  const { clock, member, store, warnings } = await setUp();
  const onLost = vi.fn<() => void>();
  await member.hold("own:a", () => {
    throw new Error("oops");
  });
  await member.hold("own:b", onLost);
  store.trouble = "hangs";
  await clock.advance(7000);
  expect(onLost).toHaveBeenCalledTimes(1);
  expect(warnings).toContain("ending what depends on own:a failed");
});

test("a replica that is not known is looked up, by many at once in one round", async () => {
  const { clock, member, store, join } = await setUp();
  await clock.advance(1000);
  const other = await join();
  store.calls.length = 0;
  const found = await Promise.all(Array.from({ length: 100 }, () => member.find(other.id)));
  expect(found.every((replica) => replica?.id === other.id)).toBe(true);
  expect(store.calls).toEqual(["register"]);
  expect(await member.find(other.id)).toBeDefined();
  expect(store.calls).toEqual(["register"]);
  expect((await member.find(member.id))?.id).toBe(member.id);
  expect(await member.find("../../etc")).toBeUndefined();
});

test("ids of replicas that do not exist cause at most four rounds a second", async () => {
  const { clock, member, store } = await setUp();
  await clock.advance(1000);
  store.calls.length = 0;
  let answered = 0;
  for (let number = 0; number < 200; number++) {
    const id = number.toString(16).padStart(12, "0");
    void member.find(id).then((replica) => replica ?? answered++);
    await clock.advance(10);
  }
  await clock.advance(500);
  expect(answered).toBe(200);
  expect(store.calls.length).toBeLessThanOrEqual(11);
});

test("a look-up rejects when the store cannot be reached, and known replicas are found all the same", async () => {
  const { clock, member, store, join } = await setUp();
  const other = await join();
  await clock.advance(3000);
  store.trouble = "fails";
  await clock.advance(20_000);
  expect(await member.find(other.id)).toMatchObject({ id: other.id });
  const asked = member.find("0123456789ab").catch((error: unknown) => error);
  await clock.advance(1000);
  expect(await asked).toMatchObject({ message: "no engine" });
});

test("a replica of the next version is used, one that is further ahead or unreadable is not", async () => {
  const { clock, engine, member, warnings } = await setUp();
  const facts = {
    language: 2,
    address: { ...address, new: 1 },
    version: "2.0.0",
    draining: false,
    more: [1],
  };
  await engine.register("aaaaaaaaaaaa", JSON.stringify(facts), 60_000);
  await engine.register("bbbbbbbbbbbb", JSON.stringify({ ...facts, language: 3 }), 60_000);
  await engine.register("cccccccccccc", "null", 60_000);
  await engine.register("dddddddddddd", "{", 60_000);
  await engine.register("eeeeeeeeeeee", JSON.stringify({ ...facts, address: { kind: "pigeon" } }), 60_000);
  await clock.advance(30_000);
  expect(member.others).toEqual([{ id: "aaaaaaaaaaaa", address, version: "2.0.0", isDraining: false }]);
  expect(warnings).toEqual([
    "replica bbbbbbbbbbbb cannot be used: it speaks language 3 between replicas, and this one 1",
    "replica cccccccccccc cannot be used: it speaks language undefined between replicas, and this one 1",
    "replica dddddddddddd cannot be used: its facts are not JSON",
    "replica eeeeeeeeeeee cannot be used: its address is of no known kind",
  ]);
});

test("a member that leaves gives everything back, and leaves no timer behind", async () => {
  const { clock, engine, member, join } = await setUp();
  const onLost = vi.fn<() => void>();
  await member.hold("own:a", onLost);
  await member[Symbol.asyncDispose]();
  await member[Symbol.asyncDispose]();
  expect([member.isIn, clock.sleeping, onLost.mock.calls.length]).toEqual([false, 0, 0]);
  await using other = await join();
  expect(other.others).toEqual([]);
  expect(await engine.read("own:a")).toBeUndefined();
});

test("a member leaves within a second when the store hangs", async () => {
  const { clock, member, store } = await setUp();
  await member.hold("own:a", () => {});
  store.trouble = "hangs";
  const left = member[Symbol.asyncDispose]();
  await clock.advance(1000);
  await left;
});
