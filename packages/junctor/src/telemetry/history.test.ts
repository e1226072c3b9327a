import { expect, test } from "vitest";
import { type CallRecord, createRecord } from "./call-record.ts";
import { CallHistory, CallRing, reasonOf } from "./history.ts";

let numbers = 0;

function ended(given: Partial<CallRecord> = {}): CallRecord {
  const begun = {
    number: ++numbers,
    method: "tools/call",
    params: undefined,
    caller: "ada",
    client: "claude 1",
    era: "modern" as const,
    isFromPage: false,
    startedAt: numbers,
  };
  return {
    ...createRecord(begun),
    server: "files",
    name: "files__read",
    outcome: "ok",
    endedAt: numbers + 5,
    ...given,
  };
}

const asked = { limit: 10, bars: 4, now: 1e9 };

test("a call is read as it was added", () => {
  const ring = new CallRing({ capacity: 10, maxTextBytes: 1e6 });
  const call = ended({
    sentAt: numbers + 3,
    traceId: "0af7651916cd43dd8448eb211c80319c",
    upstreamEra: "legacy",
    outcome: "failed",
    code: "upstream.lost",
    delivery: "not_sent",
    reason: "it is gone",
    bytesIn: 12,
    bytesOut: 5_000_000_000,
  });
  ring.add(call);
  expect(ring.find(call.number)).toMatchObject({
    number: call.number,
    caller: "ada",
    client: "claude 1",
    server: "files",
    name: "files__read",
    ms: 5,
    sentMs: 2,
    traceId: call.traceId,
    upstreamEra: "legacy",
    outcome: "failed",
    code: "upstream.lost",
    delivery: "not_sent",
    reason: "it is gone",
    bytesIn: 12,
    bytesOut: 0xffffffff,
  });
});

test("100,000 calls are kept, and failures apart from them, within 32 MB", () => {
  const history = new CallHistory();
  const first = numbers + 1;
  history.add(ended({ outcome: "failed", reason: "long ago" }));
  for (let count = 0; count < 120_000; count++) history.add(ended());
  expect(history.calls.next - history.calls.first).toBeGreaterThanOrEqual(100_000);
  expect(history.bytes).toBeLessThan(32 * 1024 ** 2);
  expect(history.calls.find(first)).toBeUndefined();
  expect(history.find(first)).toMatchObject({ reason: "long ago" });
  const page = history.query({ ...asked, isFailed: true });
  expect(page).toMatchObject({ failed: 1, all: 102_400, calls: [{ reason: "long ago" }] });
});

test("calls with long texts that all differ are forgotten before they take more than 32 MB", () => {
  const history = new CallHistory();
  for (let count = 0; count < 60_000; count++)
    history.add(
      ended({ name: `${count}`.padEnd(256, "x"), outcome: "failed", reason: `${count}`.padEnd(256, "y") }),
    );
  expect(history.bytes).toBeLessThan(32 * 1024 ** 2);
  expect(history.calls.next - history.calls.first).toBeGreaterThan(5000);
  const [newest] = history.query({ ...asked, limit: 1 }).calls;
  expect(newest).toMatchObject({
    name: "59999".padEnd(256, "x"),
    reason: "59999".padEnd(256, "y"),
    caller: "ada",
  });
});

test("pages follow one another without a gap, though calls end meanwhile", () => {
  const ring = new CallRing({ capacity: 4096, maxTextBytes: 1e6 });
  for (let count = 0; count < 25; count++) ring.add(ended());
  const one = ring.query(asked);
  for (let count = 0; count < 7; count++) ring.add(ended());
  const two = ring.query({ ...asked, before: one.next });
  const three = ring.query({ ...asked, before: two.next });
  const read = [one, two, three].flatMap(({ calls }) => calls.map(({ seq }) => seq));
  expect(read).toEqual(Array.from({ length: 25 }, (_, index) => 24 - index));
  expect(three.next).toBeUndefined();
});

test("filters are by server, caller, tool, words, trace and time", () => {
  const ring = new CallRing({ capacity: 4096, maxTextBytes: 1e6 });
  const trace = "0af7651916cd43dd8448eb211c80319c";
  ring.add(ended({ startedAt: 10 }));
  ring.add(ended({ startedAt: 20, server: "git", name: "git__diff", traceId: trace }));
  ring.add(ended({ startedAt: 30, caller: undefined, outcome: "failed", reason: "Token EXPIRED" }));
  const numbersOf = (filter: object): readonly number[] =>
    ring.query({ ...asked, ...filter }).calls.map(({ startedAt }) => startedAt);
  expect(numbersOf({ server: "git" })).toEqual([20]);
  expect(numbersOf({ server: "nobody" })).toEqual([]);
  expect(numbersOf({ tool: "files__read" })).toEqual([30, 10]);
  expect(numbersOf({ caller: "claude 1" })).toEqual([30]);
  expect(numbersOf({ words: "expired token" })).toEqual([30]);
  expect(numbersOf({ words: trace })).toEqual([20]);
  expect(numbersOf({ since: 15 })).toEqual([30, 20]);
  expect(numbersOf({ isFailed: true })).toEqual([30]);
  expect(ring.query({ ...asked, since: 0, now: 50 }).callBars).toEqual([1, 1, 1, 0]);
});

test("sums are by caller, server and tool, and count work alone", () => {
  const ring = new CallRing({ capacity: 4096, maxTextBytes: 1e6 });
  ring.add(ended({ bytesOut: 10 }));
  ring.add(ended({ bytesOut: 20, outcome: "tool_error" }));
  ring.add(ended({ method: "tools/list" }));
  ring.add(ended({ server: undefined, name: "made-up" }));
  expect(ring.group(0, undefined, true)).toMatchObject([
    {
      caller: "ada",
      server: "files",
      tool: "files__read",
      calls: 2,
      failed: 1,
      bytesOut: 30,
      durations: [5, 5],
    },
    { caller: "ada", server: undefined, tool: undefined, calls: 1 },
  ]);
  expect(ring.group(3)).toHaveLength(1);
});

test.each([
  ['{"content":[{"type":"text","text":"no \\"such\\" file"}],"isError":true}', 'no "such" file'],
  ['{"content":[]}', undefined],
  [undefined, undefined],
  [`{"content":[{"type":"text","text":"${"\\u00e9".repeat(200)}"}]}`, "é".repeat(66)],
])("the reason of a result is its first words", (result, reason) => {
  expect(reasonOf(result)?.slice(0, 66)).toBe(reason);
});
