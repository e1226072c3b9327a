import { expect, test } from "vitest";
import { toMeasureMs } from "./destination.ts";

test.each([
  [undefined, 200_000, 5000],
  [60_000, 1000, 5000],
  [6000, 3000.5, 3000],
  [6000, 5999, 1000],
  [6000, 7000, 1000],
])("of %j ms, of which %j passed, a ping may take %j", (timeoutMs, passedMs, measureMs) => {
  expect(toMeasureMs(timeoutMs, passedMs)).toBe(measureMs);
});
