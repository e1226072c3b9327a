import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AccessLog, createAccessFile } from "../../packages/junctor/src/telemetry/access-log.ts";
import { type CallRecord, createRecord } from "../../packages/junctor/src/telemetry/call-record.ts";

const base: CallRecord = {
  ...createRecord({
    number: 7,
    method: "tools/call",
    params: undefined,
    caller: "ada",
    client: undefined,
    era: "modern",
    isFromPage: false,
    startedAt: 0,
  }),
  name: "s__t",
  server: "s",
  outcome: "ok",
  bytesIn: 120,
  bytesOut: 5000,
};

function linesOf(records: readonly CallRecord[], ms = 12.41): readonly object[] {
  let text = "";
  const date = Date.UTC(2026, 10, 17, 9, 0, 0, 7);
  const log = new AccessLog({
    write: (lines) => (text += lines),
    clock: { date: () => date },
  });
  for (const record of records) log.ended(record, ms);
  log[Symbol.dispose]();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as object);
}

test("a line says what the request was, in the order of the guide", () => {
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const [line] = linesOf([{ ...base, traceId: trace }]);
  expect(JSON.stringify(line)).toBe(
    `{"time":"2026-11-17T09:00:00.007Z","method":"tools/call","tool":"s__t","server":"s","caller":"ada","era":"modern","outcome":"ok","ms":12.41,"bytesIn":120,"bytesOut":5000,"call":"c7","trace":"${trace}"}`,
  );
  const failed = { ...base, outcome: "failed", code: "upstream.timeout", delivery: "not_sent" } as const;
  expect(linesOf([failed])).toMatchObject([{ code: "upstream.timeout", delivery: "not_sent" }]);
});

test("names with quotes, line ends and other scripts cannot end a line or forge one", () => {
  const hostile = 'a"}\n{"outcome":"ok","caller":"root"}\\\u2028é😀';
  const records = [
    { ...base, name: hostile, server: undefined },
    { ...base, name: hostile, server: hostile },
    { ...base, caller: hostile },
    { ...base, code: hostile, delivery: hostile },
    { ...base, method: hostile, name: undefined },
  ];
  const lines = linesOf(records);
  expect(lines).toHaveLength(records.length);
  expect(lines).toMatchObject([
    { tool: hostile },
    { tool: hostile, server: hostile },
    { caller: hostile },
    { code: hostile, delivery: hostile },
    { method: hostile },
  ]);
});

test("a tool of one name on two servers, and under two methods, keeps its own server and method", () => {
  const records = [base, { ...base, server: "u" }, { ...base, method: "prompts/get" }, base];
  expect(linesOf(records)).toMatchObject([
    { server: "s" },
    { server: "u" },
    { method: "prompts/get", server: "s" },
    { method: "tools/call", server: "s", tool: "s__t" },
  ]);
});

test("lines stand in the order in which calls, rounds and refused requests ended", () => {
  let text = "";
  const log = new AccessLog({ write: (lines) => (text += lines), clock: { date: () => 0 } });
  log.ended({ ...base, number: 1 }, 1);
  log.ended({ ...base, number: 2, outcome: "input_required" }, 1);
  log.ended({ ...base, number: 3 }, 1);
  log.refused("no_key", undefined);
  log.ended({ ...base, number: 4 }, 1);
  log[Symbol.dispose]();
  const lines = text.trimEnd().split("\n");
  const shown = lines.map((line) => (JSON.parse(line) as { readonly call?: string }).call);
  expect(shown).toEqual(["c1", "c2", "c3", undefined, "c4"]);
});

test("many lines and very long lines are written whole and in order", () => {
  const written: string[] = [];
  const log = new AccessLog({
    write: (lines) => written.push(lines),
    clock: { date: () => 0 },
  });
  const reasons = [
    "before",
    "é".repeat(300_000),
    ...Array.from({ length: 5000 }, (_, number) => `after ${number}`),
  ];
  for (const reason of reasons) log.refused(reason, undefined);
  expect(written.length).toBeGreaterThan(1);
  log[Symbol.dispose]();
  const lines = written.join("").trimEnd().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { readonly reason: string }).reason)).toEqual(reasons);
});

test("of many callers that take turns each has lines of its own", () => {
  const callers = Array.from({ length: 20 }, (_, index) => `caller${index}`);
  const records = [...callers, ...callers].map((caller) => ({ ...base, caller }));
  expect(linesOf(records)).toMatchObject([...callers, ...callers].map((caller) => ({ caller })));
});

test("durations have three digits after the point, however long they are", () => {
  const ms = [0, 0.0004, 0.0006, 1, 999.9996, 123_456.789, 86_400_000];
  expect(ms.map((each) => linesOf([base], each)[0])).toMatchObject(
    [0, 0, 0.001, 1, 1000, 123_456.789, 86_400_000].map((each) => ({ ms: each })),
  );
});

test("names that are made up, in any number, leave the later lines right", () => {
  const records = Array.from({ length: 3000 }, (_, number) => ({
    ...base,
    number,
    name: `s__t${number}`,
    caller: `caller ${number}`,
  }));
  expect(linesOf(records)).toMatchObject(
    records.map(({ number, name, caller }) => ({ call: `c${number}`, tool: name, caller })),
  );
});

describe("a file", () => {
  const fail = (error: unknown): never => {
    throw error;
  };
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "junctor-access-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("is put aside when it is full, and no line is lost or torn by that", () => {
    const file = join(folder, "a.jsonl");
    const write = createAccessFile({ file, maxBytes: 1000, keep: 3, onFailed: fail });
    const wanted = Array.from(
      { length: 200 },
      (_, number) => `{"number":${number},"pad":"${"é".repeat(10)}"}`,
    );
    for (const line of wanted) write(`${line}\n`);
    const read = (name: string): readonly string[] =>
      readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);
    const found = ["a.jsonl.3", "a.jsonl.2", "a.jsonl.1", "a.jsonl"].flatMap(read);
    expect(found).toEqual(wanted.slice(-found.length));
    for (const name of ["a.jsonl", "a.jsonl.1"])
      expect(readFileSync(join(folder, name)).length).toBeLessThanOrEqual(1000);
  });

  test("whose last line was cut off by a crash goes on with a line of its own", () => {
    const file = join(folder, "a.jsonl");
    writeFileSync(file, '{"number":1}\n{"num');
    createAccessFile({ file, onFailed: () => {} })('{"number":2}\n');
    expect(readFileSync(file, "utf8")).toBe('{"number":1}\n{"num\n{"number":2}\n');
  });

  test("that cannot be written is reported once, until it can be again", () => {
    const failures: unknown[] = [];
    const file = join(folder, "sub", "a.jsonl");
    const write = createAccessFile({ file, onFailed: (error) => void failures.push(error) });
    write("1\n");
    write("2\n");
    expect(failures).toHaveLength(1);
  });
});
