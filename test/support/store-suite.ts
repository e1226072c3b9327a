import { describe, expect, test } from "vitest";
import type { ClusterStore, SharedLimit } from "../../packages/junctor/src/cluster/store.ts";

/** Two processes' ways to the same facts. */
export interface OpenStores extends AsyncDisposable {
  readonly a: ClusterStore;
  readonly b: ClusterStore;
  /** Lets some time of the store go by. */
  pass(ms: number): Promise<void>;
}

/** What every store does, held to it through two ways that share their facts. */
export function describeStore(name: string, open: () => Promise<OpenStores>): void {
  describe(`${name} as a store`, () => {
    test("gives a lease to one holder, and says who that is", async () => {
      await using stores = await open();
      const { a, b } = stores;
      expect(await a.claim("own:files", "A", 10_000)).toBe("A");
      expect(await b.claim("own:files", "B", 10_000)).toBe("A");
      expect(await a.claim("own:files", "A", 10_000)).toBe("A");
    });

    test("gives a lease that is given back to the next, and nobody gives back the lease of another", async () => {
      await using stores = await open();
      const { a, b } = stores;
      await a.claim("own:files", "A", 10_000);
      await b.release("own:files", "B");
      expect(await b.claim("own:files", "B", 10_000)).toBe("A");
      await a.release("own:files", "A");
      expect(await b.claim("own:files", "B", 10_000)).toBe("B");
    });

    test("lets a lease end unless its holder renews it", async () => {
      await using stores = await open();
      const { a, b } = stores;
      await a.claim("own:short", "A", 40);
      await a.claim("own:kept", "A", 40);
      expect(await a.renew(["own:kept"], "A", 60_000)).toEqual([true]);
      await until(async () => (await b.claim("own:short", "B", 10_000)) === "B", stores);
      expect(await b.claim("own:kept", "B", 10_000)).toBe("A");
    });

    test("prolongs a lease that its holder claims again", async () => {
      await using stores = await open();
      const { a, b } = stores;
      await a.claim("own:short", "A", 40);
      await a.claim("own:long", "A", 40);
      expect(await a.claim("own:long", "A", 10_000)).toBe("A");
      await until(async () => (await b.claim("own:short", "B", 10_000)) === "B", stores);
      expect(await b.claim("own:long", "B", 10_000)).toBe("A");
    });

    test("renews many leases, takes again what was lost, and leaves alone what another has", async () => {
      await using stores = await open();
      const { a, b } = stores;
      const keys = Array.from({ length: 1000 }, (_, number) => `home:${number}`);
      await b.claim("home:7", "B", 10_000);
      const renewed = await a.renew(keys, "A", 10_000);
      expect(renewed).toEqual(keys.map((key) => key !== "home:7"));
      expect(await b.claim("home:7", "C", 10_000)).toBe("B");
      expect(await b.claim("home:999", "C", 10_000)).toBe("A");
      expect(await a.renew([], "A", 10_000)).toEqual([]);
    });

    test("gives one of many who claim at once the lease", async () => {
      await using stores = await open();
      const { a, b } = stores;
      const claims = Array.from({ length: 40 }, (_, number) =>
        (number % 2 === 0 ? a : b).claim("own:hot", `holder-${number}`, 10_000),
      );
      expect(new Set(await Promise.all(claims)).size).toBe(1);
    });

    test("keeps values until their time is over", async () => {
      await using stores = await open();
      const { a, b } = stores;
      expect(await a.read("gone:s1")).toBeUndefined();
      await a.write("gone:s1", "deleted", 40);
      await a.write("gone:s2", "", 60_000);
      await a.write("gone:s2", 'ünïcode "quotes"\n', 60_000);
      expect(await b.read("gone:s2")).toBe('ünïcode "quotes"\n');
      await until(async () => (await b.read("gone:s1")) === undefined, stores);
      expect(await b.read("gone:s2")).toBe('ünïcode "quotes"\n');
    });

    test("knows the replicas that registered and did not leave", async () => {
      await using stores = await open();
      const { a, b } = stores;
      await a.register("aaaaaaaaaaaa", '{"one":1}', 60_000);
      await a.register("cccccccccccc", "{}", 60_000);
      expect(await b.register("bbbbbbbbbbbb", "{}", 60_000)).toEqual(
        new Map([
          ["aaaaaaaaaaaa", '{"one":1}'],
          ["bbbbbbbbbbbb", "{}"],
          ["cccccccccccc", "{}"],
        ]),
      );
      await a.register("cccccccccccc", "{}", 40);
      const seen = async (): Promise<string[]> => [
        ...(await a.register("aaaaaaaaaaaa", "new", 60_000)).keys(),
      ];
      await until(async () => !(await seen()).includes("cccccccccccc"), stores);
      await b.unregister("bbbbbbbbbbbb");
      expect(await a.register("aaaaaaaaaaaa", "new", 60_000)).toEqual(new Map([["aaaaaaaaaaaa", "new"]]));
    });

    test("gives no more tokens than the burst, and says when there is another", async () => {
      await using stores = await open();
      const { a, b } = stores;
      const limit: SharedLimit = { key: "limit:all:ada", everyMs: 60_000, burst: 10 };
      expect(await a.take(limit, 4)).toEqual({ count: 4, waitMs: 0 });
      expect(await b.take(limit, 4)).toEqual({ count: 4, waitMs: 0 });
      expect(await a.take(limit, 4)).toEqual({ count: 2, waitMs: 0 });
      const { count, waitMs } = await b.take(limit, 1);
      expect(count).toBe(0);
      expect(waitMs).toBeGreaterThan(30_000);
      expect(waitMs).toBeLessThanOrEqual(60_000);
      expect(await b.take({ ...limit, key: "limit:all:bob" }, 1)).toEqual({ count: 1, waitMs: 0 });
    });

    test("gives tokens again as time goes by", async () => {
      await using stores = await open();
      const limit: SharedLimit = { key: "limit:all:ada", everyMs: 20, burst: 2 };
      let given = 0;
      await until(async () => (given += (await stores.a.take(limit, 5)).count) >= 6, stores);
      expect(given).toBeLessThanOrEqual(7);
    });

    test("tells news to all, in order, until they stop to listen", async () => {
      await using stores = await open();
      const { a, b } = stores;
      const [heardByA, heardByB]: [string[], string[]] = [[], []];
      a.onNews((news) => heardByA.push(news));
      const stop = b.onNews((news) => heardByB.push(news));
      // A way may hear from now on only when it is connected.
      await until(async () => {
        await a.publish("hello");
        return heardByA.includes("hello") && heardByB.includes("hello");
      }, stores);
      for (const news of ["1", "2", "3"]) await a.publish(news);
      await until(async () => heardByA.includes("3") && heardByB.includes("3"), stores);
      expect(heardByB.filter((news) => news !== "hello")).toEqual(["1", "2", "3"]);
      stop();
      await b.publish("4");
      await until(async () => heardByA.includes("4"), stores);
      expect(heardByB).not.toContain("4");
    });

    test("refuses what is too long, too much or not a time", async () => {
      await using stores = await open();
      const { a } = stores;
      const long = "k".repeat(513);
      const keys = Array.from({ length: 1001 }, (_, number) => `${number}`);
      const refused = { name: "StoreError", code: "store.invalid" };
      await expect(a.claim(long, "A", 1000)).rejects.toMatchObject(refused);
      await expect(a.claim("", "A", 1000)).rejects.toMatchObject(refused);
      await expect(a.claim("key", long, 1000)).rejects.toMatchObject(refused);
      await expect(a.write("key", "v".repeat(4097), 1000)).rejects.toMatchObject(refused);
      await expect(a.write("key", "v", 0)).rejects.toMatchObject(refused);
      await expect(a.write("key", "v", 0.5)).rejects.toMatchObject(refused);
      await expect(a.write("key", "v", 8 * 24 * 3_600_000)).rejects.toMatchObject(refused);
      await expect(a.renew(keys, "A", 1000)).rejects.toMatchObject(refused);
      await expect(a.publish("n".repeat(4097))).rejects.toMatchObject(refused);
      await expect(a.take({ key: "l", everyMs: 0, burst: 1 }, 1)).rejects.toMatchObject(refused);
      await expect(a.take({ key: "l", everyMs: 1, burst: 1 }, 0)).rejects.toMatchObject(refused);
    });

    test("rejects everything once it is closed", async () => {
      await using stores = await open();
      const { a } = stores;
      await a[Symbol.asyncDispose]();
      await a[Symbol.asyncDispose]();
      await expect(a.read("key")).rejects.toMatchObject({ name: "StoreError", code: "store.unreachable" });
      await expect(a.publish("news")).rejects.toMatchObject({ code: "store.unreachable" });
    });
  });
}

async function until(condition: () => Promise<boolean>, stores: OpenStores): Promise<void> {
  while (!(await condition())) await stores.pass(5);
}
