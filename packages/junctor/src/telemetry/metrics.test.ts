import { expect, test } from "vitest";
import { type CallRecord, createRecord } from "./call-record.ts";
import { Charts, points } from "./charts.ts";
import { CallCounts, CallMetrics, toExposition, toHistogram } from "./metrics.ts";

const call = { method: "tools/call", server: "s", tool: "t", era: "modern", errorType: "" };

test("tools beyond the limit, and methods that the protocol does not know, are counted as _other", () => {
  const metrics = new CallMetrics({ maxTools: 1000 });
  for (let number = 0; number < 1500; number++) metrics.record({ ...call, tool: `t${number}` }, 0.001);
  for (let number = 0; number < 50; number++)
    metrics.record({ ...call, method: `m${number}`, tool: "" }, 0.001);
  const countOf = (tool: string, method = "tools/call"): number | undefined =>
    metrics.series.find((series) => series.tool === tool && series.method === method)?.durations.count;
  expect(metrics.series).toHaveLength(1002);
  expect([countOf("t0"), countOf("t999"), countOf("t1000"), countOf("_other")]).toEqual([
    1,
    1,
    undefined,
    500,
  ]);
  expect(countOf("", "_other")).toBe(50);
});

test("error types that are made up, and series beyond the limit, share a series", () => {
  const metrics = new CallMetrics({ maxSeries: 200 });
  for (let number = 0; number < 1000; number++)
    metrics.record({ ...call, server: `s${number}`, errorType: `e${number}` }, 1);
  expect(metrics.series.length).toBeLessThan(210);
  expect(metrics.series.reduce((sum, { durations }) => sum + durations.count, 0)).toBe(1000);
});

test("a histogram has the buckets of the conventions and 1, 2, 5 ms, cumulative", () => {
  const metrics = new CallMetrics();
  for (const seconds of [0.00005, 0.0015, 0.004, 0.3, 1000]) metrics.record(call, seconds);
  const text = toHistogram("x_seconds", "Help.", metrics);
  const bucket = (le: string): string | undefined =>
    new RegExp(`x_seconds_bucket\\{.*le="${le.replace("+", "\\+")}"\\} (\\d+)`).exec(text)?.[1];
  expect(["0.001", "0.002", "0.005", "0.01", "0.5", "300", "+Inf"].map(bucket)).toEqual([
    "1",
    "2",
    "3",
    "3",
    "4",
    "4",
    "5",
  ]);
  expect(text.match(/_bucket/g)).toHaveLength(18);
  expect(text).toContain('x_seconds_count{method="tools/call",server="s",tool="t",era="modern"} 5');
});

test("names of hostile servers cannot end a label or a line", () => {
  const labels = { server: 'a"} 1\nevil 2\\' };
  const text = toExposition([{ name: "x", help: "a\nb", type: "gauge", samples: [{ labels, value: 1 }] }]);
  expect(text.split("\n")).toHaveLength(4);
  expect(text).toContain(String.raw`x{server="a\"} 1\nevil 2\\"} 1`);
});

test("charts have rate, errors and quantiles of each step, keep an hour, and do not grow with time", () => {
  const metrics = new CallMetrics();
  const charts = new Charts(metrics);
  for (let count = 0; count < 100; count++) metrics.record(call, count < 98 ? 0.0015 : 0.4);
  metrics.record({ ...call, errorType: "upstream.timeout" }, 0.0015);
  charts.tick(10_000);
  const [first] = charts.newest(10);
  expect(first).toMatchObject({
    rate: expect.closeTo(10.1) as number,
    errors: expect.closeTo(0.1) as number,
  });
  expect(first?.p50Ms).toBeGreaterThan(1);
  expect(first?.p50Ms).toBeLessThan(2);
  expect(first?.p99Ms).toBeGreaterThan(200);
  charts.tick(20_000);
  expect(charts.newest(10)).toEqual([
    { rate: 0, errors: 0, p50Ms: null, p99Ms: null },
    { server: "s", rate: 0, errors: 0, p50Ms: null, p99Ms: null },
    { server: "s", tool: "t", rate: 0, errors: 0, p50Ms: null, p99Ms: null },
  ]);
  const [tool] = charts.read("tool", 10);
  expect(tool?.rate).toHaveLength(points);
  expect(tool?.rate.at(-2)).toBeCloseTo(10.1);
  for (let step = 0; step < points; step++) charts.tick(step);
  expect(charts.ofServer("s", points)?.rate.every((rate) => rate === 0)).toBe(true);
});

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

test("calls and what their servers took are counted, with their bytes", () => {
  const counts = new CallCounts();
  for (let number = 1; number <= 3; number++) {
    counts.returned(ended("ok"), 2, "");
    counts.ended(ended("ok"), 4);
    expect(counts.totals).toMatchObject({ ended: number, failed: 0 });
  }
  expect(read(counts, "mcp_server_operation_duration_seconds_count")).toBe(3);
  expect(read(counts, "mcp_server_operation_duration_seconds_sum")).toBeCloseTo(0.012);
  expect(read(counts, "mcp_client_operation_duration_seconds_count")).toBe(3);
  expect(read(counts, "mcp_client_operation_duration_seconds_sum")).toBeCloseTo(0.006);
  expect(read(counts, "junctor_request_bytes_total")).toBe(15);
  expect(read(counts, "junctor_response_bytes_total")).toBe(21);
});

test("failures are counted by their type, and rounds of one call each", () => {
  const counts = new CallCounts();
  counts.ended(ended("failed", { code: "upstream.timeout" }), 4);
  counts.ended(ended("input_required"), 3);
  counts.ended(ended("ok"), 4);
  expect(counts.totals).toMatchObject({ ended: 3, failed: 1 });
  expect(counts.expose(0, [])).toMatch(/_count\{[^}]*error_type="upstream.timeout"[^}]*\} 1/);
  expect(read(counts, "mcp_client_operation_duration_seconds_count")).toBeUndefined();
});
