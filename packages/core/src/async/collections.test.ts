import * as fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { Numbered } from "./collections.ts";

test("is a map that numbers its items, whatever comes and goes", () => {
  const command = fc.oneof(
    fc.record({ kind: fc.constant("add" as const), count: fc.integer({ min: 1, max: 40 }) }),
    fc.record({ kind: fc.constant("delete" as const), at: fc.nat(200) }),
    fc.record({ kind: fc.constant("get" as const), number: fc.nat(400) }),
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const numbered = new Numbered<{ readonly tag: number }>();
      const model = new Map<number, { readonly tag: number }>();
      let last = 0;
      for (const step of commands) {
        if (step.kind === "add") {
          for (let tag = 0; tag < step.count; tag++) {
            const item = { tag };
            const number = numbered.add(item);
            expect(number).toBeGreaterThan(last);
            last = number;
            model.set(number, item);
          }
        } else if (step.kind === "delete") {
          const number = [...model.keys()][step.at % Math.max(1, model.size)] ?? step.at;
          expect(numbered.delete(number)).toBe(model.delete(number));
          expect(numbered.delete(number)).toBe(false);
        } else expect(numbered.get(step.number)).toBe(model.get(step.number));
        expect(numbered.size).toBe(model.size);
        expect(new Set(numbered.values())).toEqual(new Set(model.values()));
        for (const [number, item] of model) expect(numbered.get(number)).toBe(item);
      }
    }),
    { numRuns: runs(300) },
  );
});

test("numbers from one on, without gaps, as long as not too many are there", () => {
  const numbered = new Numbered<object>();
  const numbers = Array.from({ length: 1000 }, () => {
    const number = numbered.add({});
    numbered.delete(number);
    return number;
  });
  expect(numbers).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1));
});

test("is not led astray by numbers it never gave", () => {
  const numbered = new Numbered<object>();
  expect([0, -1, 1.5, 2 ** 32 + 1, Number.NaN].map((number) => numbered.get(number))).toEqual(
    Array.from({ length: 5 }, () => undefined),
  );
  numbered.add({});
  expect([2 ** 32 + 1, 17, 1.5].map((number) => numbered.get(number))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
