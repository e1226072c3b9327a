import { describe, expect, test } from "vitest";
import { Shares } from "./shares.ts";

/** Takes until refused, and says how much there was. */
function takeAll(shares: Shares<string>, owner: string): number {
  for (let count = 0; ; count++) {
    if (shares.refusal(owner) !== undefined) return count;
    shares.take(owner);
  }
}

describe("a share", () => {
  test("of an owner that is alone is four fifths, and leaves room for others", () => {
    const shares = new Shares<string>({ what: "things", total: 1000 });
    expect(takeAll(shares, "greedy")).toBe(800);
    expect(takeAll(shares, "other")).toBeGreaterThan(150);
    for (let newcomer = 0; newcomer < 8; newcomer++) shares.take(`newcomer ${newcomer}`);
  });

  test("is never larger than what each may hold", () => {
    const shares = new Shares<string>({ what: "things", total: 1000, each: 10 });
    expect(takeAll(shares, "greedy")).toBe(10);
    expect(() => shares.take("greedy")).toThrow("You hold too many things; at most 10 now.");
    expect(shares.refusal("other", 11)?.code).toBe("rpc.too_many");
    expect(shares.refusal("other", 10)).toBeUndefined();
  });

  test.each([1, 2, 3, 4])("of one in %i is all of it", (total) => {
    expect(takeAll(new Shares<string>({ what: "things", total }), "lone")).toBe(total);
  });

  test("that is given back can be taken again, by anyone", () => {
    const shares = new Shares<string>({ what: "things", total: 10 });
    const count = takeAll(shares, "greedy");
    shares.give("greedy", count);
    expect([shares.held, shares.heldBy("greedy")]).toEqual([0, 0]);
    expect(takeAll(shares, "other")).toBe(count);
  });

  test("is refused to all when there is nothing left", () => {
    const shares = new Shares<number>({ what: "things", total: 20 });
    for (let owner = 0; owner < 20; owner++) shares.take(owner);
    expect(shares.refusal(20)).toMatchObject({ code: "rpc.overloaded" });
    shares.give(3);
    expect(shares.refusal(20)).toBeUndefined();
  });
});

test("the greediest is the one that holds most", () => {
  const shares = new Shares<string>({ what: "things", total: 100 });
  expect(shares.greediest()).toBeUndefined();
  for (const owner of ["a", "b", "b", "c"]) shares.take(owner);
  expect(shares.greediest()).toBe("b");
  shares.give("b", 2);
  shares.take("c");
  expect(shares.greediest()).toBe("c");
});

test("owners that come and go leave nothing behind", () => {
  const shares = new Shares<object>({ what: "things", total: 10 });
  for (let count = 0; count < 100; count++) {
    const owner = {};
    shares.take(owner);
    shares.give(owner);
    shares.give(owner);
  }
  expect([shares.held, shares.greediest()]).toEqual([0, undefined]);
});
