import { describe, expect, test } from "vitest";
import type { GatewayLog } from "../log/log.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import type { Health } from "../upstream/connection.ts";
import { createHealthLog } from "./server-log.ts";

interface HealthListener {
  readonly clock: VirtualClock;
  /** The lines above the level `debug`. */
  readonly logged: string[];
  /** The lines on the level `warn`. */
  readonly warned: string[];
  readonly debugged: string[];
  up(): void;
  down(reason?: string): void;
  report(health: Health): void;
}

function listen(): HealthListener {
  const clock = createVirtualClock(1_000_000);
  const logged: string[] = [];
  const warned: string[] = [];
  const debugged: string[] = [];
  const write = (facts: { readonly reason?: string }, text: string): void =>
    void logged.push(facts.reason === undefined ? text : `${text}: ${facts.reason}`);
  const log: GatewayLog = {
    debug: (_, text) => void debugged.push(text),
    info: write,
    warn: (facts, text) => {
      warned.push(text);
      write(facts, text);
    },
    error: write,
  };
  const healthLog = createHealthLog(log, clock);
  const report = (health: Health): void => healthLog("up", health);
  return {
    clock,
    logged,
    warned,
    debugged,
    report,
    up: () => {
      const agreement = { mode: { kind: "modern", revision: "2026-07-28" } } as never;
      report({ kind: "up", since: clock.now(), agreement, connectMs: 1 });
    },
    down: (reason = "it ended") => {
      const now = clock.now();
      report({
        kind: "down",
        since: now,
        code: "exited",
        reason,
        said: "",
        nextTryAt: now + 100,
        isBroken: false,
      });
      report({ kind: "starting", since: now, after: { code: "exited", reason, said: "" } });
    },
  };
}

test("a dead server is warned of once, and summed up at growing intervals", async () => {
  const { clock, logged, warned, debugged, down } = listen();
  // A try a second, for three hours.
  for (let tries = 0; tries < 3 * 3600; tries++) {
    down();
    await clock.advance(1000);
  }
  expect(logged[0]).toBe("up is down: it ended");
  expect(logged[1]).toBe("up is still down after 61 tries: it ended");
  expect(warned).toEqual(["up is down"]);
  expect(logged).toHaveLength(8); // After 0, 1, 3, 7, 15, 31, 63 and 123 minutes.
  expect(debugged.length).toBeGreaterThan(10_000);
});

test("another reason is logged at once, each reason once", () => {
  const { logged, down } = listen();
  for (let round = 0; round < 10; round++) {
    down("it ended");
    down("nothing listens there");
  }
  expect(logged).toEqual(["up is down: it ended", "up is still down after 2 tries: nothing listens there"]);
});

test("a server that is up again is logged, and its next failure is news", async () => {
  const { clock, logged, up, down } = listen();
  up();
  for (let outages = 0; outages < 3; outages++) {
    down();
    down();
    up();
    await clock.advance(10_000);
  }
  const outage = ["up is down: it ended", "up is up"];
  expect(logged).toEqual(["up is up", ...outage, ...outage, ...outage]);
});

describe("a server that comes up and does not last", () => {
  test("is not logged each time", async () => {
    const { clock, logged, up, down } = listen();
    for (let lives = 0; lives < 50; lives++) {
      down();
      up();
      await clock.advance(1000);
    }
    expect(logged).toEqual(["up is down: it ended", "up is up", "up is still down after 2 tries: it ended"]);
  });

  test("is logged as up when it lasts after all", async () => {
    const { clock, logged, up, down, report } = listen();
    for (let lives = 0; lives < 10; lives++) {
      down();
      up();
      await clock.advance(1000);
    }
    await clock.advance(9000);
    expect(logged.at(-1)).toBe("up is up");
    report({ kind: "stopped" });
    expect(clock.sleeping).toBe(0);
  });
});

test("after a server was stopped, or rested, its next failure is logged as the first", () => {
  const { logged, down, report } = listen();
  down();
  report({ kind: "idle" });
  down();
  report({ kind: "stopped" });
  down();
  expect(logged).toEqual(Array.from({ length: 3 }, () => "up is down: it ended"));
});
