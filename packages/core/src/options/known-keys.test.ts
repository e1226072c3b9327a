import { expect, test } from "vitest";
import { assertKnownKeys, keys, type KeysOf } from "./known-keys.ts";

interface Options {
  readonly pageSize?: number;
  readonly onError?: () => void;
}

const known: KeysOf<Options> = keys("pageSize onError");

test("the compiler refuses a list that misses a key", () => {
  // @ts-expect-error -- there is no "onError"
  const incomplete: KeysOf<Options> = keys("pageSize");
  expect(incomplete).toEqual({ pageSize: true });
});

test("keys that are known pass, also those without a value", () => {
  expect(() => assertKnownKeys("f", { pageSize: 3, onError: undefined }, known)).not.toThrow();
  expect(() => assertKnownKeys("f", {}, known)).not.toThrow();
});

test("a misspelt key is named, with the one that is likely meant", () => {
  expect(() => assertKnownKeys("f", { pagesize: 3 }, known)).toThrow(
    new TypeError('f has no option "pagesize"; did you mean "pageSize"?'),
  );
});

test("a key that resembles no other is answered with all keys", () => {
  expect(() => assertKnownKeys("f", { colour: 3 }, known)).toThrow(
    new TypeError('f has no option "colour"; its options are pageSize, onError'),
  );
});

test("a key that people bring from elsewhere is answered with ours", () => {
  expect(() => assertKnownKeys("f", { limit: 3 }, known, { limit: "pageSize" })).toThrow('mean "pageSize"?');
  expect(() => assertKnownKeys("f", { toString: 3 }, known)).toThrow('no option "toString"');
});

test("what is not an object is refused", () => {
  expect(() => assertKnownKeys("f", null as unknown as object, known)).toThrow(
    "f: the options must be an object, but are null",
  );
});
