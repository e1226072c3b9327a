import { describe, expect, test } from "vitest";
import { Quota } from "./quota.ts";

/** Takes until refused, and returns how much that was. */
function takeAll(quota: Quota<string>, owner: string): number {
  for (let count = 0; ; count++) {
    if (quota.refusal(owner) !== undefined) return count;
    quota.take(owner);
  }
}

describe("a share", () => {
  test("of an owner that is alone is four fifths, and leaves room for others", () => {
    const quota = new Quota<string>({ what: "things", total: 1000 });
    expect(takeAll(quota, "greedy")).toBe(800);
    expect(takeAll(quota, "other")).toBeGreaterThan(150);
    for (let newcomer = 0; newcomer < 8; newcomer++) quota.take(`newcomer ${newcomer}`);
  });

  test("is never larger than what each may hold", () => {
    const quota = new Quota<string>({ what: "things", total: 1000, each: 10 });
    expect(takeAll(quota, "greedy")).toBe(10);
    expect(() => quota.take("greedy")).toThrow("You hold too many things; at most 10 now.");
    expect(quota.refusal("other", 11)?.code).toBe("rpc.too_many");
    expect(quota.refusal("other", 10)).toBeUndefined();
  });

  test.each([1, 2, 3, 4])("of one in %i is all of it", (total) => {
    expect(takeAll(new Quota<string>({ what: "things", total }), "lone")).toBe(total);
  });

  test("that is given back can be taken again, by anyone", () => {
    const quota = new Quota<string>({ what: "things", total: 10 });
    const count = takeAll(quota, "greedy");
    quota.give("greedy", count);
    expect([quota.held, quota.heldBy("greedy")]).toEqual([0, 0]);
    expect(takeAll(quota, "other")).toBe(count);
  });

  test("is refused to all when there is nothing left", () => {
    const quota = new Quota<number>({ what: "things", total: 20 });
    for (let owner = 0; owner < 20; owner++) quota.take(owner);
    expect(quota.refusal(20)).toMatchObject({ code: "rpc.overloaded" });
    quota.give(3);
    expect(quota.refusal(20)).toBeUndefined();
  });
});

test("the greediest is the one that holds most", () => {
  const quota = new Quota<string>({ what: "things", total: 100 });
  expect(quota.greediest()).toBeUndefined();
  for (const owner of ["a", "b", "b", "c"]) quota.take(owner);
  expect(quota.greediest()).toBe("b");
  quota.give("b", 2);
  quota.take("c");
  expect(quota.greediest()).toBe("c");
});

test("owners that come and go leave nothing behind", () => {
  const quota = new Quota<object>({ what: "things", total: 10 });
  for (let count = 0; count < 100; count++) {
    const owner = {};
    quota.take(owner);
    quota.give(owner);
    quota.give(owner);
  }
  expect([quota.held, quota.greediest()]).toEqual([0, undefined]);
});
