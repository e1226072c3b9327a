import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { LazyAbort } from "../../../core/src/async/deadline.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { WireContext } from "../../../core/src/mcp/server.ts";
import type { Request } from "../../../core/src/rpc/message.ts";
import { type CallRecord, createRecord, idOf, stepsOf } from "./call-record.ts";
import { type CallChanges, LiveCalls } from "./live-calls.ts";
import { createTelemetry } from "./telemetry.ts";

const facts = { method: "tools/call", caller: undefined, client: undefined } as const;

function begin(calls: LiveCalls, number: number): CallRecord {
  const call = createRecord({
    ...facts,
    number,
    params: undefined,
    era: "modern",
    isFromPage: false,
    startedAt: number,
  });
  calls.begin(call);
  return call;
}

const takeTexts = (changes: CallChanges): readonly string[] =>
  changes.take().calls.map((call) => `${idOf(call)} ${call.state}`);

test("a reader gets the calls that began, changed and ended, each once", () => {
  const calls = new LiveCalls();
  const before = begin(calls, 1);
  const changes = calls.watch();
  const after = begin(calls, 2);
  expect(takeTexts(changes).toSorted()).toEqual(["c1 queued", "c2 queued"]);
  expect(takeTexts(changes)).toEqual([]);
  calls.step(before, "sent", 3);
  expect(takeTexts(changes)).toEqual(["c1 sent"]);
  calls.step(before, "asked", 4);
  calls.step(before, "answered", 5);
  expect(takeTexts(changes)).toEqual(["c1 answered"]);
  calls.end(before, 6, false);
  calls.end(after, 6, true);
  expect(takeTexts(changes).toSorted()).toEqual(["c1 ended", "c2 parked"]);
  expect(calls.resume("c2", "prompts/get")).toBeUndefined();
  expect(calls.resume("c2", "tools/call")).toBe(after);
  calls.end(after, 9, false);
  expect(takeTexts(changes)).toEqual(["c2 ended"]);
  changes[Symbol.dispose]();
  calls.step(begin(calls, 3), "asked", 9);
  expect(takeTexts(calls.watch())).toEqual(["c3 asked"]);
  expect(stepsOf(before).map(({ state }) => state)).toEqual(["queued", "sent", "asked", "answered", "ended"]);
});

test("of many calls some are shown and the others counted, and the end of a shown call is shown", () => {
  const calls = new LiveCalls();
  const changes = calls.watch();
  const slow = Array.from({ length: 150 }, (_, index) => begin(calls, index + 1));
  const first = changes.take();
  expect([first.calls.length, first.skipped]).toEqual([50, 0]);
  for (let number = 1000; number < 6000; number++) calls.end(begin(calls, number), number, false);
  for (const call of slow) calls.end(call, 6000, false);
  const seen = new Set<string>();
  let skipped = 0;
  for (let taken = changes.take(); taken.calls.length > 0; taken = changes.take()) {
    expect(taken.calls.length).toBeLessThanOrEqual(50);
    for (const call of taken.calls) {
      expect(call.state).toBe("ended");
      expect(seen.has(idOf(call))).toBe(false);
      seen.add(idOf(call));
    }
    skipped += taken.skipped;
  }
  expect(first.calls.every((call) => seen.has(idOf(call)))).toBe(true);
  expect(seen.size + skipped).toBe(5150);
});

test("calls that ask while their reader is slow are kept in a bounded number", () => {
  const calls = new LiveCalls();
  const changes = calls.watch();
  for (let number = 1; number <= 20_000; number++) {
    const call = begin(calls, number);
    calls.step(call, "asked", number);
    calls.end(call, number, true);
  }
  let count = 0;
  for (let taken = changes.take(); taken.calls.length > 0; taken = changes.take())
    count += taken.calls.length;
  expect(count).toBeLessThanOrEqual(4096);
  expect(calls.recent).toHaveLength(4096);
});

const wire = {
  era: { kind: "legacy", session: undefined },
  cancellation: new LazyAbort(),
} as unknown as WireContext;

function toRequest(params: object, method = "tools/call"): Request {
  return {
    kind: "request",
    id: "1",
    method,
    params: RawJson.fromText(JSON.stringify(params)),
  } as unknown as Request;
}

test("a call that comes back is not taken for a call of another process with the same number", () => {
  const processes = [1, 2].map(() => createTelemetry({ transport: "http", isShown: true }));
  const [carried] = processes.map(({ observer }) => {
    const call = observer.began(toRequest({ name: "ask" }), wire);
    const states = call?.carried();
    call?.outcome("input_required", RawJson.fromText("{}"));
    call?.ended(RawJson.fromText("{}"));
    return states;
  });
  const counts = processes.map(({ observer, calls }) => {
    const round = observer.began(toRequest({ name: "ask" }), wire);
    round?.resumed(carried);
    round?.ended(RawJson.fromText("{}"));
    return calls.recent.length;
  });
  // At its own process both rounds are one call; at the other, its parked call still waits beside the one that came.
  expect(counts).toEqual([1, 2]);
  for (const telemetry of processes) telemetry[Symbol.dispose]();
});

test("names and methods as long as a request are not kept in memory by the calls that were made with them", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  using telemetry = createTelemetry({ transport: "http", isShown: true });
  const used = (): number => {
    collect();
    return process.memoryUsage().heapUsed / 1e6;
  };
  const before = used();
  for (let number = 0; number < 64; number++) {
    // Read from JSON, as requests are: a part of such a string would keep all of it.
    const read = (): string => JSON.parse(`"${number}${"x".repeat(1_000_000)}"`) as string;
    const call = telemetry.observer.began(toRequest({ name: read() }, read()), wire);
    call?.found("server", read(), read());
    call?.ended(RawJson.fromText("{}"));
  }
  expect(telemetry.calls.recent).toHaveLength(64);
  expect(telemetry.calls.recent[0]?.name).toMatch(/^63x{254}$/);
  expect(used() - before).toBeLessThan(20);
});
