import { describe, expect, test } from "vitest";
import { createDeferred, type Deferred } from "../../../core/src/async/queue.ts";
import { ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Question } from "../../../core/src/mcp/types.ts";
import { type CallContext, createCallContext } from "../../../core/src/provider/context.ts";
import type { Outcome } from "../../../core/src/provider/provider.ts";
import { createVirtualClock, type VirtualClock } from "../testing/virtual-clock.ts";
import { isParkedState, type ParkedState, Parking, type ParkingOptions } from "./parking.ts";

const question: Question = { method: "elicitation/create", params: { message: "?", requestedSchema: {} } };
const answers = { "ask-1": RawJson.fromValue({ action: "accept", content: {} }) };
const done = (text: string): Outcome => ({ kind: "complete", result: RawJson.fromValue({ text }) });
const lost = {
  code: "upstream.abandoned",
  server: "up",
  delivery: "outcome_unknown",
  message: expect.stringContaining("was not made again") as string,
};

/** A server that asks once, then waits to be told how to end. */
interface Asking {
  readonly parking: Parking;
  readonly clock: VirtualClock;
  /** What became of each call: its answer, and that it was cancelled. */
  readonly log: string[];
  readonly ends: Deferred<Outcome>[];
  /** Makes a call and resolves with its state when it is parked. */
  park(caller?: string): Promise<ParkedState>;
  call(caller?: string, context?: Partial<CallContext>): Promise<Outcome>;
  retry(state: ParkedState, caller?: string, context?: Partial<CallContext>): Promise<Outcome>;
}

function createAsking(options: Omit<ParkingOptions, "clock"> = {}): Asking {
  const clock = createVirtualClock();
  const parking = new Parking({ clock, ...options });
  const log: string[] = [];
  const ends: Deferred<Outcome>[] = [];
  const invoke = async (context: CallContext): Promise<Outcome> => {
    const end = createDeferred<Outcome>();
    ends.push(end);
    context.signal.addEventListener("abort", () => {
      log.push("cancelled");
      end.reject(context.signal.reason);
    });
    const asked = context.ask?.(question, new AbortController().signal);
    asked?.then(
      ({ text }) => log.push(text),
      () => {},
    );
    return end.promise;
  };
  const toContext = (caller: string, more: Partial<CallContext>): CallContext =>
    createCallContext({ caller, capabilities: { elicitation: {} }, ...more });
  const asking: Asking = {
    parking,
    clock,
    log,
    ends,
    call: (caller = "alice", more = {}) => {
      const called = parking.run("up", invoke, toContext(caller, more));
      called.catch(() => {});
      return called;
    },
    park: async (caller) => {
      const called = asking.call(caller);
      await clock.advance(30);
      const outcome = await called;
      if (outcome.kind !== "input_required" || !isParkedState(outcome.state))
        throw new Error("It is not parked.");
      return outcome.state;
    },
    retry: (state, caller = "alice", more = {}) => {
      const retried = parking.resume(state, { answers, state }, toContext(caller, more));
      retried.catch(() => {});
      return retried;
    },
  };
  return asking;
}

test("a parked call goes on with its answer, and its end is kept for a minute", async () => {
  const { park, retry, ends, clock, parking, log } = createAsking();
  const state = await park();
  const first = retry(state);
  await clock.advance(0);
  ends[0]?.resolve(done("well"));
  await expect(first).resolves.toEqual(done("well"));
  await clock.advance(59_999);
  await expect(retry(state)).resolves.toEqual(done("well"));
  await clock.advance(60_000);
  expect(parking.size).toBe(0);
  await expect(retry(state)).rejects.toMatchObject(lost);
  expect(log).toEqual(['{"action":"accept","content":{}}']);
  expect(clock.sleeping).toBe(0);
});

test("a call that asks nothing is never in the table", async () => {
  const { parking, ends, call, clock } = createAsking();
  const called = call();
  ends[0]?.resolve(done("at once"));
  await clock.advance(30);
  await expect(called).resolves.toEqual(done("at once"));
  expect(parking.size).toBe(0);
  expect(clock.sleeping).toBe(0);
});

test("nobody but its caller finds a parked call, and the server hears nothing of who tried", async () => {
  const { park, retry, log, ends } = createAsking();
  const state = await park("alice");
  await expect(retry(state, "mallory")).rejects.toMatchObject({ rpcCode: -32602 });
  await expect(retry({ parked: "AAAAAAAAAAAAAAAAAAAAAA", server: "up" })).rejects.toMatchObject(lost);
  expect(log).toEqual([]);
  expect(ends).toHaveLength(1);
});

describe("a caller that never comes back", () => {
  test("has its call cancelled after 10 minutes, and nothing is left of it", async () => {
    const { park, retry, clock, parking, log, ends } = createAsking();
    const state = await park();
    await clock.advance(600_000 - 1);
    expect(log).toEqual([]);
    await clock.advance(1);
    await clock.advance(0);
    expect(log).toEqual(['{"action":"cancel"}', "cancelled"]);
    expect(parking.size).toBe(0);
    expect(clock.sleeping).toBe(0);
    await expect(retry(state)).rejects.toMatchObject(lost);
    expect(ends).toHaveLength(1);
  });

  test("has the outcome kept for it for as long, when the server ends the call meanwhile", async () => {
    const { park, retry, clock, ends, parking, log } = createAsking();
    const state = await park();
    ends[0]?.resolve(done("without you"));
    await clock.advance(599_999);
    await expect(retry(state)).resolves.toEqual(done("without you"));
    await clock.advance(60_000);
    expect(parking.size).toBe(0);
    expect(log).toEqual([]);
  });
});

test("each retry gives its caller the whole time again", async () => {
  const { park, parking, clock, log } = createAsking({ ttlMs: 1000 });
  const state = await park();
  const context = createCallContext({ caller: "alice" });
  for (let round = 0; round < 5; round++) {
    await clock.advance(999);
    const asked = await parking.resume(state, { answers: {}, state }, context);
    expect(asked.kind).toBe("input_required");
  }
  expect(log).toEqual([]);
  await clock.advance(1000);
  expect(log).toEqual(['{"action":"cancel"}', "cancelled"]);
});

test("a server may take longer than that after it was answered, while its caller waits", async () => {
  const { park, retry, clock, ends, log } = createAsking({ ttlMs: 1000 });
  const retried = retry(await park());
  await clock.advance(5000);
  expect(log).toEqual(['{"action":"accept","content":{}}']);
  ends[0]?.resolve(done("slow and steady"));
  await expect(retried).resolves.toEqual(done("slow and steady"));
});

test("a call whose caller leaves while it is worked on is cancelled, and gone in time", async () => {
  const { park, retry, clock, log, parking } = createAsking();
  const leaving = new AbortController();
  const retried = retry(await park(), "alice", { signal: leaving.signal });
  await clock.advance(0);
  leaving.abort(new Error("gone"));
  await expect(retried).rejects.toThrow("gone");
  await clock.advance(0);
  expect(log).toEqual(['{"action":"accept","content":{}}', "cancelled"]);
  await clock.advance(600_000);
  expect(parking.size).toBe(0);
  expect(clock.sleeping).toBe(0);
});

describe("at the limit", () => {
  test.each([
    ["of one caller", { maxParkedPerCaller: 2 }],
    ["of all", { maxParked: 2 }],
  ])("%s another call is refused and cancelled, and the others go on", async (_, limits) => {
    const { park, call, retry, clock, ends, log, parking } = createAsking(limits);
    const states = [await park(), await park()];
    const refused = call();
    await clock.advance(30);
    await expect(refused).rejects.toThrow(ToolError);
    await clock.advance(0);
    expect(log).toEqual(['{"action":"cancel"}', "cancelled"]);
    expect(parking.size).toBe(2);
    const retried = retry(states[0] as ParkedState);
    await clock.advance(0);
    ends[0]?.resolve(done("well"));
    await expect(retried).resolves.toEqual(done("well"));
  });

  test("of one caller others are not held up", async () => {
    const { park, parking } = createAsking({ maxParkedPerCaller: 1 });
    await park("alice");
    await park("bob");
    expect(parking.size).toBe(2);
  });

  test("of all no caller takes the last place from another", async () => {
    const { park, call, clock, parking } = createAsking({ maxParked: 10 });
    for (let count = 0; count < 8; count++) await park("alice");
    const refused = call("alice");
    await clock.advance(30);
    await expect(refused).rejects.toThrow(ToolError);
    for (const caller of ["bob", "carol"]) await park(caller);
    expect(parking.size).toBe(10);
    await parking.giveUpCaller("alice");
    for (let count = 0; count < 5; count++) await park("bob");
  });

  test("room is made by calls whose end was sent", async () => {
    const { park, retry, clock, ends, parking } = createAsking({ maxParkedPerCaller: 2, maxParked: 3 });
    for (let index = 0; index < 10; index++) {
      const retried = retry(await park());
      await clock.advance(0);
      ends[index]?.resolve(done("well"));
      await expect(retried).resolves.toEqual(done("well"));
    }
    await park();
    await park();
    await park("bob");
    expect(parking.size).toBe(3);
  });

  test("an outcome that nobody has fetched makes no room", async () => {
    const { park, call, retry, clock, ends } = createAsking({ maxParkedPerCaller: 1 });
    const state = await park();
    ends[0]?.resolve(done("without you"));
    const refused = call();
    await clock.advance(30);
    await expect(refused).rejects.toThrow(ToolError);
    await expect(retry(state)).resolves.toEqual(done("without you"));
  });

  test("expiry makes room again", async () => {
    const { park, clock } = createAsking({ maxParkedPerCaller: 1, ttlMs: 1000 });
    await park();
    await clock.advance(1000);
    await expect(park()).resolves.toHaveProperty("parked");
  });
});

test("closing gives everything up", async () => {
  const { park, parking, log, clock } = createAsking();
  await park("alice");
  await park("bob");
  await parking.close();
  await clock.advance(0);
  expect(log.toSorted()).toEqual(
    ["cancelled", "cancelled", '{"action":"cancel"}', '{"action":"cancel"}'].toSorted(),
  );
  expect(parking.size).toBe(0);
  expect(clock.sleeping).toBe(0);
});

describe("a call that others wait for", () => {
  const cancelled = ['{"action":"cancel"}', "cancelled"];

  test("is given up when its caller does not come back soon", async () => {
    const { parking, clock, log, park } = createAsking();
    await park();
    const done = parking.shortenWaits("up", 1000);
    await clock.advance(900);
    expect(log).toEqual([]);
    await clock.advance(100);
    expect(log).toEqual(cancelled);
    done();
  });

  test("has its whole time again when they wait no longer", async () => {
    const { parking, clock, log, park } = createAsking({ ttlMs: 5000 });
    await park();
    const done = parking.shortenWaits("up", 1000);
    await clock.advance(500);
    done();
    await clock.advance(4000);
    expect(log).toEqual([]);
    await clock.advance(500);
    expect(log).toEqual(cancelled);
  });

  test("at another server keeps its time", async () => {
    const { parking, clock, log, park } = createAsking();
    await park();
    parking.shortenWaits("other", 1000);
    await clock.advance(10_000);
    expect(log).toEqual([]);
  });
});

test("the parked calls of a caller whose key is gone end at once, and no others", async () => {
  const { parking, log, park, retry } = createAsking();
  const [hers, his] = [await park("alice"), await park("bob")];
  await parking.giveUpCaller("alice");
  expect(log).toEqual(['{"action":"cancel"}', "cancelled"]);
  await expect(retry(hers, "alice")).rejects.toMatchObject(lost);
  expect(parking.size).toBe(1);
  void retry(his, "bob");
});
