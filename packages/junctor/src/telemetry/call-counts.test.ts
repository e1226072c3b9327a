import { expect, test } from "vitest";
import { CallCounts } from "./call-counts.ts";
import { type CallRecord, createRecord } from "./call-record.ts";

function ended(outcome: CallRecord["outcome"], more: Partial<CallRecord> = {}): CallRecord {
  const begun = { number: 1, method: "tools/call", params: undefined, caller: undefined, client: undefined };
  const record = createRecord({ ...begun, era: "modern", isFromPage: false, startedAt: 10 });
  const facts = { name: "s__t", server: "s", ownName: "t", upstreamEra: "legacy" } as const;
  return Object.assign(record, { ...facts, outcome, endedAt: 14, bytesIn: 5, bytesOut: 7, ...more });
}

/** The value of one line of the exposition; undefined when there is none. */
function read(counts: CallCounts, start: string): number | undefined {
  const line = counts
    .expose(0, [])
    .split("\n")
    .find((each) => each.startsWith(start));
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")));
}

test.each([1, 63, 64, 65, 200])("of %i calls that ended, all are counted whenever they are read", (calls) => {
  const counts = new CallCounts();
  for (let number = 1; number <= calls; number++) {
    counts.ended(ended("ok", { sentAt: 11, returnedAt: 13 }));
    if (number % 50 === 0) expect(counts.totals).toMatchObject({ ended: number, failed: 0 });
  }
  expect(read(counts, "mcp_server_operation_duration_seconds_count")).toBe(calls);
  expect(read(counts, "mcp_client_operation_duration_seconds_count")).toBe(calls);
  expect(read(counts, "mcp_client_operation_duration_seconds_sum")).toBeCloseTo(calls * 0.002);
  expect(read(counts, "junctor_request_bytes_total")).toBe(5 * calls);
  expect(read(counts, "junctor_response_bytes_total")).toBe(7 * calls);
});

test("failures are counted by their type, and rounds of one call each", () => {
  const counts = new CallCounts();
  counts.ended(ended("failed", { code: "upstream.timeout" }));
  counts.roundEnded(ended("input_required"), 3);
  counts.ended(ended("ok"));
  expect(counts.totals).toMatchObject({ ended: 3, failed: 1 });
  expect(counts.expose(0, [])).toMatch(/_count\{[^}]*error_type="upstream.timeout"[^}]*\} 1/);
  expect(read(counts, "mcp_client_operation_duration_seconds_count")).toBeUndefined();
});
