import { expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { Repeats } from "./pacing.ts";

test("an event is new the first time, and again after an hour without it", async () => {
  const clock = createVirtualClock();
  const repeats = new Repeats({ clock });
  expect(repeats.isNew("a")).toBe(true);
  expect(repeats.note("a")).toBe(1);
  // Once in half an hour, for a day: never an hour without it.
  for (let count = 0; count < 48; count++) {
    await clock.advance(30 * 60_000);
    expect(repeats.isNew("a")).toBe(false);
    repeats.note("a");
  }
  expect(repeats.isNew("b")).toBe(true);
  await clock.advance(60 * 60_000);
  expect(repeats.isNew("a")).toBe(true);
  expect(repeats.note("a")).toBe(1);
});
