import { expect, test } from "vitest";

// The tables of docs/evidence/performance.md are written by the benchmark. It is JavaScript, so its types end here.
const { toMarkdown, withReport } = (await import(
  new URL("../proof/bench/lib/markdown.mjs", import.meta.url).href
)) as {
  toMarkdown: (report: object, machine: string) => string;
  withReport: (page: string, report: string) => string;
};

const spread = { median: 20, min: 18, max: 30 };
const figures = { cpu: spread, perSecond: 1000, p50: 1, p99: 2, peak: 64 };
const report = {
  seconds: 5,
  contests: [
    {
      section: "servers",
      name: "small call, legacy",
      systems: [
        { name: "junctor", ...figures, cpuByRound: [24, 30, 22] },
        { name: "sdk-v1", problem: "ended with 1: a | b" },
        { name: "bare", ...figures, cpuByRound: [20, 20, 20] },
      ],
    },
    { section: "growth", name: "1 tool", systems: [{ name: "junctor", ...figures }] },
    { section: "growth", name: "10 tools", systems: [{ name: "junctor", problem: "too many" }] },
  ],
  startup: [{ name: "stdio server, ms to first answer", systems: [{ name: "junctor", ms: spread }] }],
  footprints: [{ name: "junctor", mebibytes: 7.12, packages: 28 }],
  absences: ["tmcp: no client"],
  goals: [{ what: "start", bound: "at most 9", reached: null, isMet: false, remark: "not measured" }],
};

test("a run becomes tables", () => {
  const lines = toMarkdown(report, "a machine").split("\n");
  expect(lines).toContain("Measured on a machine, in one run of 5 s.");
  expect(lines).toContain(
    "| small call, legacy | **junctor** | 20.0 | 18.0–30.0 | 1.20x | 1000 | 1.00 | 2.00 | 64 |",
  );
  expect(lines).toContain("|  | sdk-v1 | – ended with 1: a \\| b |  |  |  |  |  |  |");
  expect(lines).toContain("| µs CPU a call, by tools of a server | 1 | 10 |");
  expect(lines).toContain("| **junctor** | 20.0 | – |");
  expect(lines).toContain("| **junctor** | 7.1 | 28 |");
  expect(lines).toContain("| start | at most 9 | – | **missed**; not measured |");
  expect(lines).toContain("- tmcp: no client");
  expect(lines.join("\n")).not.toContain("### Gateways");
});

test("the tables take the place of the last ones, between the markers of the page", () => {
  const page = "above\n<!-- report:begin -->\nold\n<!-- report:end -->\nbelow\n";
  const once = withReport(page, "new");
  expect(once).toBe("above\n<!-- report:begin -->\n\nnew\n\n<!-- report:end -->\nbelow\n");
  expect(withReport(once, "new")).toBe(once);
  expect(() => withReport("no markers", "new")).toThrow("report:begin");
});
