import { expect, test } from "vitest";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { Pacer } from "./line-reader.ts";

function createPaced(): { pacer: Pacer; clock: ReturnType<typeof createVirtualClock>; said: string[] } {
  const clock = createVirtualClock();
  const said: string[] = [];
  const pacer = new Pacer({
    burstBytes: 1000,
    bytesPerSecond: 100,
    clock,
    pause: () => said.push("pause"),
    resume: () => said.push("resume"),
  });
  return { pacer, clock, said };
}

test("an amount may come at once, and as much again after the time that takes at the rate", async () => {
  const { pacer, clock, said } = createPaced();
  await clock.advance(60_000);
  pacer.charge(1000);
  await clock.advance(10_000);
  pacer.charge(1000);
  expect(said).toEqual([]);
});

test("what is more has to wait until it is paid for", async () => {
  const { pacer, clock, said } = createPaced();
  await clock.advance(60_000);
  pacer.charge(1200);
  expect([said, pacer.isPausing]).toEqual([["pause"], true]);
  await clock.advance(1999);
  expect(said).toEqual(["pause"]);
  await clock.advance(1);
  expect([said, pacer.isPausing]).toEqual([["pause", "resume"], false]);
  pacer.charge(100);
  expect(said).toEqual(["pause", "resume", "pause"]);
});

test("what is left of somebody who has gone comes at once", async () => {
  const { pacer, clock, said } = createPaced();
  await clock.advance(60_000);
  pacer.charge(5000);
  pacer.free();
  pacer.charge(5000);
  await clock.advance(60_000);
  expect(said).toEqual(["pause", "resume"]);
});
