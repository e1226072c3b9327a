import { expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { Pacer } from "./line-reader.ts";

function createPaced(): { pacer: Pacer; clock: ReturnType<typeof createVirtualClock>; actions: string[] } {
  const clock = createVirtualClock();
  const actions: string[] = [];
  const pacer = new Pacer({
    burstBytes: 1000,
    bytesPerSecond: 100,
    clock,
    pause: () => actions.push("pause"),
    resume: () => actions.push("resume"),
  });
  return { pacer, clock, actions };
}

test("an amount may come at once, and as much again after the time that it takes at the rate", async () => {
  const { pacer, clock, actions } = createPaced();
  await clock.advance(60_000);
  pacer.charge(1000);
  await clock.advance(10_000);
  pacer.charge(1000);
  expect(actions).toEqual([]);
});

test("what is more has to wait until it is paid for", async () => {
  const { pacer, clock, actions } = createPaced();
  await clock.advance(60_000);
  pacer.charge(1200);
  expect([actions, pacer.isPausing]).toEqual([["pause"], true]);
  await clock.advance(1999);
  expect(actions).toEqual(["pause"]);
  await clock.advance(1);
  expect([actions, pacer.isPausing]).toEqual([["pause", "resume"], false]);
  pacer.charge(100);
  expect(actions).toEqual(["pause", "resume", "pause"]);
});

test("the rest of a sender that has gone comes at once", async () => {
  const { pacer, clock, actions } = createPaced();
  await clock.advance(60_000);
  pacer.charge(5000);
  pacer.free();
  pacer.charge(5000);
  await clock.advance(60_000);
  expect(actions).toEqual(["pause", "resume"]);
});
