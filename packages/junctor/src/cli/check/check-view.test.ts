import { expect, test } from "vitest";
import { createVirtualClock } from "../../testing/virtual-clock.ts";
import { type CheckView, createCheckView } from "./check.ts";

const eraseLine = "\u001b[1A\u001b[2K";
const nothing = { tools: 0, resources: 0, prompts: 0 };
const calc = {
  name: "calc",
  status: "up",
  revision: "2026-07-28",
  says: "calc 1.0.0",
  ...nothing,
  tools: 12,
  connectMs: 420,
  latencyMs: 1.2,
} as const;
const crash = {
  name: "crash",
  status: "down",
  ...nothing,
  code: "exited",
  reason: "it exited with code 1",
  trouble: "it exited with code 1; it is tried again in 1 s",
} as const;
const slow = {
  name: "slow",
  status: "starting",
  ...nothing,
  code: "starting",
  trouble: "it is still starting, since 3 s",
  said: "installing\n",
} as const;

function open(columns?: number): {
  view: CheckView;
  written: string[];
  reminders: string[];
  advance(ms: number): Promise<void>;
} {
  const clock = createVirtualClock(0);
  const [written, reminders]: [string[], string[]] = [[], []];
  const view = createCheckView({
    names: ["calc", "crash", "slow"],
    columns,
    hasColors: false,
    clock,
    write: async (text) => void written.push(text),
    tell: async (text) => void reminders.push(text),
  });
  return { view, written, reminders, advance: (ms) => clock.advance(ms) };
}

test("a pipe gets one line for each server when it is known, and never loses one", async () => {
  const { view, written, reminders, advance } = open();
  view.wait([calc, crash, slow]);
  expect(written).toEqual([]);
  await view.add(crash);
  await view.add(calc);
  expect(written.join("")).toBe(
    [
      "  server  state     revision    tools   start    ping  it says it is",
      "✗ crash   failed    it exited with code 1",
      "✓ calc    up        2026-07-28     12  420 ms  1.2 ms  calc 1.0.0",
      "",
    ].join("\n"),
  );
  expect(reminders).toEqual([]);
  await advance(15_000);
  view.wait([slow]);
  view.wait([slow]);
  expect(reminders).toEqual([
    "junctor: still waiting for slow (it is still starting, since 3 s: installing)\n",
  ]);
});

test("a terminal shows below the known servers which others are waited for and why, within its width", async () => {
  const { view, written } = open(60);
  view.wait([calc, slow]);
  await view.add(calc);
  await view.end();
  const [first = "", second = "", last] = written;
  expect(first.split("\n")).toEqual([
    "",
    "Waiting for 2 of 3 servers, 0 s",
    expect.stringMatching(/^ {2}calc /),
    "  slow    it is still starting, since 3 s: installing",
    "",
  ]);
  // The four lines are taken back, and the server stands above those that are left.
  expect(second.startsWith(`${eraseLine.repeat(4)}  server  state`)).toBe(true);
  expect(second).toContain("Waiting for 1 of 3 servers");
  expect(last).toBe(eraseLine.repeat(3));
  for (const line of second.replaceAll(eraseLine, "").split("\n")) expect(line.length).toBeLessThan(60);
});

test("text of a server cannot steer the terminal", async () => {
  const { view, written } = open(80);
  await view.add({ ...calc, says: "\u001b[2Jcalc\r" });
  view.wait([{ ...slow, said: "\u001b[31mred" }]);
  expect(written.join("").replaceAll(eraseLine, "")).not.toContain("\u001b");
});
