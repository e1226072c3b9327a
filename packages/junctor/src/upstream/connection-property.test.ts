import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createFakeOpener, turn } from "../../../../test/support/fake-client.ts";
import { runs } from "../../../../test/support/runs.ts";
import { createBackoff } from "../../../core/src/async/pacing.ts";
import { ClosedError } from "../../../core/src/errors/index.ts";
import { createVirtualClock } from "../testing/virtual-clock.ts";
import { Connection, type Health, transitions } from "./connection.ts";
import { StartGate, StartSlots } from "./starts.ts";

const gone = new ClosedError("outcome_unknown", "it is gone");
const never = new AbortController().signal;

const kinds = ["start", "rest", "doubt", "succeed", "fail", "lose", "giveUp"] as const;
/** The end of the connection, starts of other servers, and short lives of other connections. */
const rareKinds = ["stop", "takeSlot", "giveSlot", "forbid"] as const;

/** Something that happens to a connection, or around it, or that time passes. */
type Step =
  | { readonly kind: (typeof kinds)[number] | (typeof rareKinds)[number] }
  | { readonly kind: "whenUp"; readonly triesAgain: boolean }
  | { readonly kind: "wait"; readonly ms: number };

const toStep = (kind: Exclude<Step["kind"], "whenUp" | "wait">): Step => ({ kind });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("start", "rest", "doubt", "giveUp").map(toStep) },
  { weight: 9, arbitrary: fc.constantFrom("succeed", "fail", "lose").map(toStep) },
  { weight: 2, arbitrary: fc.constantFrom("takeSlot", "giveSlot").map(toStep) },
  { weight: 1, arbitrary: fc.constantFrom("forbid").map(toStep) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("whenUp"), triesAgain: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("wait"), ms: fc.constantFrom(0, 1, 600, 2000, 11_000) }),
  },
);

/** Steps, and whether what is ready runs after each. */
const steps = fc.array(fc.tuple(step, fc.boolean()), { maxLength: 40, size: "max" });

/** By chance some transitions are rare. These make each of them. */
const examples = [
  "stop",
  "takeSlot start stop",
  "takeSlot start rest",
  "takeSlot start giveSlot succeed lose",
  "start stop",
  "start rest",
  "start succeed stop",
  "start succeed rest",
  "start fail rest",
  "start fail stop",
  "start fail wait",
  "start fail takeSlot wait",
  "forbid start",
].flatMap((words) => {
  const each = words
    .split(" ")
    .map((kind) => [kind === "wait" ? { kind, ms: 600 } : ({ kind } as Step), true] as [Step, boolean]);
  return [true, false].map((keepsAlive): [boolean, number, [Step, boolean][]] => [keepsAlive, 0, each]);
});

test("whatever happens, one is opened at a time and six a minute, every waiting call ends, and nothing is left", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.boolean(), fc.nat(), steps, async (keepsAlive, seed, happening) => {
      const clock = createVirtualClock(1_000_000);
      const common = new StartGate({ clock, maxStarts: 3 });
      const slots = new StartSlots({ clock, maxStarts: () => 1, lookMs: 5000 });
      const slotsTaken: (() => void)[] = [];
      let state: Health["kind"] = "idle";
      const opener = createFakeOpener();
      const starts: number[] = [];
      const pending = new Set<Promise<unknown>>();
      const controllers: AbortController[] = [];
      const connection = new Connection({
        server: "files",
        open: (life) => {
          const { openings } = opener;
          // One at a time: the one before is lost, given up, or never was.
          expect(openings.every(({ isSettled }) => isSettled)).toBe(true);
          expect(connection.client).toBeUndefined();
          starts.push(clock.now());
          return opener.open(life);
        },
        clock,
        gate: new StartGate({ clock }),
        // Short, so that it is the gate that holds it back.
        backoff: createBackoff({ minMs: 10, maxMs: 200, random: () => (seed % 100) / 100 }),
        keepsAlive,
        patienceMs: 2000,
        startPatienceMs: () => 30_000,
        slots,
        common,
        report: ({ kind }) => {
          expect(transitions[state]).toContain(kind);
          seen.add(`${state} to ${kind}`);
          state = kind;
          // A listener finds the connection as it is now.
          expect(connection.health.kind).toBe(kind);
          expect(connection.client !== undefined).toBe(kind === "up");
        },
      });
      const need = (triesAgain: boolean): void => {
        const controller = new AbortController();
        controllers.push(controller);
        const once = (): Promise<unknown> =>
          connection.whenUp(controller.signal).then((client) => {
            // No call gets a client that is closed.
            expect(opener.openings.find(({ fake }) => fake?.client === client)?.fake?.isClosed).toBe(false);
          });
        const waiting: Promise<unknown> = (triesAgain ? once().catch(once) : once())
          .catch((error: unknown) => {
            if (!(error instanceof Error) || !/not available|given up/.test(error.message)) throw error;
          })
          .finally(() => pending.delete(waiting));
        pending.add(waiting);
      };
      const last = (): ReturnType<typeof createFakeOpener>["openings"][number] | undefined =>
        opener.openings.at(-1);
      const act = async (each: Step): Promise<void> => {
        switch (each.kind) {
          case "start":
            return connection.start();
          case "rest":
            return void connection.rest();
          case "doubt":
            return connection.doubt();
          case "whenUp":
            return need(each.triesAgain);
          case "giveUp":
            return controllers.pop()?.abort(new Error("given up"));
          case "succeed":
            if (last()?.isSettled === false) last()?.succeed();
            return;
          case "fail":
            if (last()?.isSettled === false) last()?.fail(gone);
            return;
          case "lose":
            return last()?.lose(gone);
          case "stop":
            return connection[Symbol.asyncDispose]();
          case "takeSlot":
            if (slots.isFull) return;
            return void slotsTaken.push(
              await slots.take({ isUrgent: () => false, processorMs: () => 0, signal: never }),
            );
          case "giveSlot":
            return slotsTaken.pop()?.();
          case "forbid":
            for (let count = 0; count < 3; count++) common.note();
            return;
          case "wait":
            return clock.advance(each.ms);
        }
      };
      for (const [each, isTurn] of happening) {
        await act(each);
        if (isTurn) await turn();
      }
      for (const giveBack of slotsTaken) giveBack();
      // Nobody waits longer than the longest patience, and once more when trying again.
      for (let rounds = 0; rounds < 32 && pending.size > 0; rounds++) {
        if (last()?.isSettled === false) last()?.fail(gone);
        await clock.advance(2000);
      }
      expect(pending.size).toBe(0);
      need(false);
      await turn();
      await connection[Symbol.asyncDispose]();
      await turn();
      expect(pending.size).toBe(0);
      expect(opener.alive).toBe(0);
      expect(clock.sleeping).toBe(0);
      expect(connection.health.kind).toBe("stopped");
      for (const start of starts)
        expect(starts.filter((other) => other >= start && other < start + 60_000).length).toBeLessThanOrEqual(
          6,
        );
    }),
    { numRuns: runs(300), examples },
  );
  const known = Object.entries(transitions).flatMap(([from, all]) => all.map((to) => `${from} to ${to}`));
  expect([...seen].toSorted()).toEqual(known.toSorted());
});
