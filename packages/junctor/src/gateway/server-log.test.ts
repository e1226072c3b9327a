import { describe, expect, test } from "vitest";
import type { GatewayLog } from "../log/log.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import type { Health } from "../upstream/connection.ts";
import { createHealthLog } from "./server-log.ts";

interface Heard {
  readonly clock: VirtualClock;
  /** What is told above debug. */
  readonly told: string[];
  /** What is told on the level `warn`. */
  readonly warned: string[];
  readonly debugged: string[];
  up(): void;
  down(reason?: string): void;
  hear(health: Health): void;
}

function listen(): Heard {
  const clock = createVirtualClock(1_000_000);
  const told: string[] = [];
  const warned: string[] = [];
  const debugged: string[] = [];
  const tell = (facts: { readonly reason?: string }, text: string): void =>
    void told.push(facts.reason === undefined ? text : `${text}: ${facts.reason}`);
  const log: GatewayLog = {
    debug: (_, text) => void debugged.push(text),
    info: tell,
    warn: (facts, text) => {
      warned.push(text);
      tell(facts, text);
    },
    error: tell,
  };
  const healthLog = createHealthLog(log, clock);
  const hear = (health: Health): void => healthLog("up", health);
  return {
    clock,
    told,
    warned,
    debugged,
    hear,
    up: () => {
      const agreement = { mode: { kind: "modern", revision: "2026-07-28" } } as never;
      hear({ kind: "up", since: clock.now(), agreement, connectMs: 1 });
    },
    down: (reason = "it ended") => {
      const now = clock.now();
      hear({
        kind: "down",
        since: now,
        code: "exited",
        reason,
        said: "",
        nextTryAt: now + 100,
        isBroken: false,
      });
      hear({ kind: "starting", since: now, after: { code: "exited", reason, said: "" } });
    },
  };
}

test("a dead server is warned of once, and summed up at growing intervals", async () => {
  const { clock, told, warned, debugged, down } = listen();
  // A try a second, for three hours.
  for (let tries = 0; tries < 3 * 3600; tries++) {
    down();
    await clock.advance(1000);
  }
  expect(told[0]).toBe("up is down: it ended");
  expect(told[1]).toBe("up is still down after 61 tries: it ended");
  expect(warned).toEqual(["up is down"]);
  expect(told).toHaveLength(8); // After 0, 1, 3, 7, 15, 31, 63 and 123 minutes.
  expect(debugged.length).toBeGreaterThan(10_000);
});

test("another reason is told at once, each reason once", () => {
  const { told, down } = listen();
  for (let round = 0; round < 10; round++) {
    down("it ended");
    down("nothing listens there");
  }
  expect(told).toEqual(["up is down: it ended", "up is still down after 2 tries: nothing listens there"]);
});

test("one that is up again is told so, and its next failure is news", async () => {
  const { clock, told, up, down } = listen();
  up();
  for (let outages = 0; outages < 3; outages++) {
    down();
    down();
    up();
    await clock.advance(10_000);
  }
  const outage = ["up is down: it ended", "up is up"];
  expect(told).toEqual(["up is up", ...outage, ...outage, ...outage]);
});

describe("one that comes up and does not last", () => {
  test("is not told each time", async () => {
    const { clock, told, up, down } = listen();
    for (let lives = 0; lives < 50; lives++) {
      down();
      up();
      await clock.advance(1000);
    }
    expect(told).toEqual(["up is down: it ended", "up is up", "up is still down after 2 tries: it ended"]);
  });

  test("is told to be up when it lasts after all", async () => {
    const { clock, told, up, down, hear } = listen();
    for (let lives = 0; lives < 10; lives++) {
      down();
      up();
      await clock.advance(1000);
    }
    await clock.advance(9000);
    expect(told.at(-1)).toBe("up is up");
    hear({ kind: "stopped" });
    expect(clock.sleeping).toBe(0);
  });
});

test("one that is stopped, or rests, begins again", () => {
  const { told, down, hear } = listen();
  down();
  hear({ kind: "idle" });
  down();
  hear({ kind: "stopped" });
  down();
  expect(told).toEqual(Array.from({ length: 3 }, () => "up is down: it ended"));
});
