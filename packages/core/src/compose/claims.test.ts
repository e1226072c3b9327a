import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Claim, merge } from "./claims.ts";

const claim = (server: string, key: string, ownName = key): Claim<string> => ({
  key,
  item: `${server}'s ${ownName}`,
  server,
  ownName,
});

test("of several claims the first in the config wins, and the others are reported", () => {
  const { claims, collisions } = merge(
    [claim("a", "x"), claim("b", "x"), claim("c", "x"), claim("b", "y")],
    new Map(),
  );
  expect(claims.map(({ item }) => item)).toEqual(["a's x", "b's y"]);
  expect(collisions).toEqual([{ key: "x", owner: "a", others: ["b", "c"] }]);
});

test("a server that owned a name keeps it", () => {
  const owners = new Map([["x", "b"]]);
  const { claims, collisions } = merge([claim("a", "x"), claim("b", "x")], owners);
  expect(claims.map(({ server }) => server)).toEqual(["b"]);
  expect(collisions).toEqual([{ key: "x", owner: "b", others: ["a"] }]);
});

test("an owner that no longer claims a name loses it", () => {
  const owners = new Map([["x", "b"]]);
  merge([claim("a", "x")], owners);
  expect(merge([claim("a", "x"), claim("b", "x")], owners).claims.map(({ server }) => server)).toEqual(["a"]);
});

test("a server that lists a thing twice collides with nobody", () => {
  const { claims, collisions } = merge([claim("a", "x"), claim("a", "x")], new Map());
  expect(claims).toHaveLength(1);
  expect(collisions).toEqual([]);
});

test("two things of one server under one name are a collision", () => {
  const { claims, collisions } = merge([claim("a", "x", "one"), claim("a", "x", "two")], new Map());
  expect(claims.map(({ ownName }) => ownName)).toEqual(["one"]);
  expect(collisions).toEqual([{ key: "x", owner: "a", others: ["a"] }]);
});

const servers = ["a", "b", "c"] as const;
const claims = fc.array(
  fc.record({ server: fc.constantFrom(...servers), key: fc.constantFrom("x", "y", "z", "__proto__") }),
  { maxLength: 12, size: "max" },
);
const toClaims = (
  list: readonly { readonly server: string; readonly key: string }[],
): readonly Claim<string>[] =>
  list
    .map(({ server, key }) => claim(server, key))
    .toSorted((one, other) => (one.server < other.server ? -1 : 1));

test("merging is deterministic, loses no name, has one owner for each, and reports every rival", () => {
  fc.assert(
    fc.property(claims, (list) => {
      const all = toClaims(list);
      const owners = new Map<string, string>();
      const merged = merge(all, owners);
      expect(merge(all, new Map())).toEqual(merged);
      expect(merge(all, owners)).toEqual(merged);
      expect(new Set(merged.claims.map(({ key }) => key))).toEqual(new Set(all.map(({ key }) => key)));
      expect(new Set(merged.claims.map(({ key }) => key)).size).toBe(merged.claims.length);
      expect(owners).toEqual(new Map(merged.claims.map(({ key, server }) => [key, server])));
      for (const { key } of merged.claims) {
        const claimants = new Set(all.filter((each) => each.key === key).map(({ server }) => server));
        const collision = merged.collisions.find((each) => each.key === key);
        expect(collision === undefined ? 1 : 1 + collision.others.length).toBe(claimants.size);
      }
    }),
  );
});

test("a server that comes late, or is new, takes no name from its owner", () => {
  fc.assert(
    fc.property(claims, fc.constantFrom(...servers), (list, late) => {
      const all = toClaims(list);
      const owners = new Map<string, string>();
      const before = merge(
        all.filter(({ server }) => server !== late),
        owners,
      ).claims;
      const after = new Map(merge(all, owners).claims.map((each) => [each.key, each.server]));
      for (const { key, server } of before) expect(after.get(key)).toBe(server);
    }),
  );
});
