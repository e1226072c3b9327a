import { expect, test } from "vitest";

// docs/evidence/field.md is written by the field test. It is JavaScript, so its types end here.
const { findFaults } = (await import(new URL("../proof/field/lib/verdict.mjs", import.meta.url).href)) as {
  findFaults: (report: object) => string[];
};
const { renderPage } = (await import(new URL("../proof/field/lib/page.mjs", import.meta.url).href)) as {
  renderPage: (report: object) => string;
};

const server = {
  name: "files",
  package: "server-files@1.0.0",
  revision: "2025-11-25",
  own: 2,
  listed: 2,
  counted: 2,
  mended: 1,
  leftOut: [],
  coldMs: 4200,
  downs: 0,
  warmMs: 900,
  problem: undefined,
};
const visit = {
  field: "client",
  firstListed: 2,
  firstListMs: 1500,
  listed: ["files__read", "files__write"],
  lists: 1,
  calls: [{ tool: "files__read", ok: true, ms: 3 }],
  totalMs: 2000,
};
const cell = {
  client: "sdk-v1",
  transport: "stdio",
  cache: "warm",
  report: visit,
  calls: 1,
  missing: [],
  extra: [],
  left: 0,
};
const report = {
  date: "2026-01-02",
  node: "20.19.0",
  npm: "11.0.0",
  clientNode: "24.0.0",
  machine: "2 cores",
  seconds: 130,
  isNpxCold: true,
  bringUpSeconds: 61,
  servers: [server],
  secondStarts: [],
  wanted: ["files__read", "files__write"],
  calls: ["files__read"],
  clients: [
    {
      name: "sdk-v1",
      title: "official SDK v1",
      package: "sdk",
      version: "1.0.0",
      transports: ["http", "stdio"],
    },
    {
      name: "mcp-remote",
      title: "mcp-remote",
      package: "mcp-remote",
      version: "0.1.0",
      transports: ["http"],
    },
  ],
  cells: [cell],
  left: 0,
  problems: [],
};

test("a run with every tool listed and every call made has no faults", () => {
  expect(findFaults(report)).toEqual([]);
  const page = renderPage(report);
  expect(page).toContain("1 of 1 servers came up, with 2 tools");
  expect(page).toContain("Processes after the run: **0**");
  expect(page).toContain("| files | `server-files@1.0.0` | 2025-11-25 | 2 | 2 | 1 |  | 4.2 s |  | 0.9 s |");
  expect(page).toContain("| official SDK v1 | stdio | warm | 2 (1.5 s) | 2 of 2 | 1 of 1 | 2.0 s | 0 | ok |");
  expect(page).toContain("| mcp-remote | stdio |  | reaches servers by URL only |");
});

test("a tool that neither is listed nor told to be left out is a fault", () => {
  const lost = { ...report, servers: [{ ...server, own: 3 }] };
  expect(findFaults(lost)).toEqual([
    "files: it lists 3 tools, the gateway 2 of them, and tells of 0 it left out",
  ]);
  expect(findFaults({ ...report, servers: [{ ...server, own: 3, leftOut: ["bad"] }] })).toEqual([]);
});

test("a missing tool, a wrong result and a process that is left are faults of their combination", () => {
  const calls = [{ tool: "files__read", ok: false, ms: 3, problem: "no answer" }];
  const bad = { ...cell, report: { ...visit, calls }, missing: ["files__write"], left: 2 };
  const faulty = { ...report, cells: [bad] };
  expect(findFaults(faulty)).toEqual([
    "sdk-v1, stdio, warm: 1 tools are not listed (files__write)",
    "sdk-v1, stdio, warm: files__read: no answer",
    "sdk-v1, stdio, warm: 2 processes were left",
  ]);
  expect(renderPage(faulty)).toContain("| 1 of 2 | 0 of 1 | 2.0 s | 2 | **not ok** |");
});

test("a client that does not make all calls is measured by those it has to make", () => {
  const calls = ["files__read", "files__write"];
  expect(findFaults({ ...report, calls })).toEqual([]);
  expect(renderPage({ ...report, calls })).toContain("| 2 of 2 | 1 of 1 | 2.0 s | 0 | ok |");
  expect(findFaults({ ...report, calls, cells: [{ ...cell, calls: 2 }] })).toEqual([
    "sdk-v1, stdio, warm: 1 of 2 calls were made",
  ]);
});

test("a first list that is not complete is a fault with a warm cache only", () => {
  const late = { ...visit, firstListed: 0, lists: 2 };
  expect(findFaults({ ...report, cells: [{ ...cell, report: late }] })).toEqual([
    "sdk-v1, stdio, warm: its first list had only 0 tools",
  ]);
  expect(findFaults({ ...report, cells: [{ ...cell, cache: "cold", report: late }] })).toEqual([]);
});

test("processes after the run are a fault", () => {
  expect(findFaults({ ...report, left: 1 })).toEqual(["1 processes are left after the run"]);
});
