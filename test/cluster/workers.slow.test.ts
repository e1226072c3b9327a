// Several processes behind one port, with real processes, sockets and signals.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { familyOf } from "../gateway/support/cli-gateway.ts";
import { junctor, oddServer } from "../support/junctor-bin.ts";
import { isAlive } from "../support/processes.ts";
import { callOnce, startCrew, startHoldingServer, untilWorkers } from "./support/workers.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-workers-"));
  file = join(folder, "mcp.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

const [command, ...args] = oddServer;
const odd = { command, args };

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

test("four workers greet once, take the same share of connections, and leave nothing when they stop", async () => {
  await using holding = await startHoldingServer();
  const here = { type: "http", url: holding.listener.url };
  await using crew = await startCrew(file, { mcpServers: { here, odd } }, "--workers", "4");
  const port = await crew.port;
  const before = await untilWorkers(crew, 4);
  expect(before.map(({ worker }) => worker)).toEqual(
    [1, 2, 3, 4].map((number) => ({ number, count: 4, primary: crew.process.pid })),
  );
  expect(crew.output().match(/Junctor listens on/g)).toHaveLength(1);
  expect(crew.output()).toContain("with 4 workers and starts 2 servers of");
  await expect.poll(() => crew.output().match(/2 of 2 servers are up/g)).toHaveLength(1);
  expect(new Set(crew.log.flatMap(({ worker }) => worker ?? []))).toEqual(new Set([1, 2, 3, 4]));

  // All at once: the workers that are quicker at the moment must not take more.
  const connections = 200;
  const names = Array.from({ length: connections }, (_, index) => `n${index}`);
  expect(await Promise.all(names.map((name) => callOnce(port, "here__echo", { name })))).toEqual(names);
  const shares = (await crew.statuses()).map(
    ({ calls }, index) => calls.total - (before[index]?.calls.total ?? 0),
  );
  expect(sum(shares)).toBe(connections);
  for (const share of shares) expect(Math.abs(share - connections / 4)).toBeLessThanOrEqual(connections / 20);

  const family = familyOf(crew.process.pid ?? 0);
  expect(family.pids.length).toBeGreaterThanOrEqual(6); // Four workers, one guardian, one server.
  crew.process.kill("SIGTERM");
  expect(await crew.exited).toEqual({ code: 0, signal: null });
  await expect.poll(() => family.left()).toEqual([]);
});

test("a worker that is killed takes its own calls with it and no other, and is replaced", async () => {
  await using holding = await startHoldingServer();
  const here = { type: "http", url: holding.listener.url };
  await using crew = await startCrew(file, { mcpServers: { here } }, "--workers", "4");
  const port = await crew.port;
  const before = await untilWorkers(crew, 4);
  const calls = Array.from({ length: 16 }, (_, index) => callOnce(port, "here__hold", { name: `n${index}` }));
  await expect.poll(() => holding.begun.length).toBe(16);
  const [victim] = (await crew.statuses()).filter(({ worker }) => worker?.number === 2);
  const held = victim?.calls.underway ?? 0;
  expect(held).toBeGreaterThan(0);
  process.kill(victim?.pid ?? 0, "SIGKILL");
  const after = await untilWorkers(crew, 4, [victim?.pid ?? 0]);
  expect(after.map(({ pid }) => pid).filter((pid) => !before.some((one) => one.pid === pid))).toHaveLength(1);
  expect(crew.log).toContainEqual(
    expect.objectContaining({
      msg: "a worker ended, and is replaced",
      worker: 2,
      how: "SIGKILL",
      delayMs: 0,
    }),
  );
  holding.release();
  const ends = await Promise.all(calls);
  expect(ends.filter((end) => end === "ECONNRESET")).toHaveLength(held);
  expect(ends.filter((end) => end.startsWith("held n"))).toHaveLength(16 - held);
  // Nothing was called twice.
  expect(new Set(holding.begun).size).toBe(holding.begun.length);
  const next = Array.from({ length: 8 }, (_, index) => callOnce(port, "here__echo", { name: `m${index}` }));
  expect(await Promise.all(next)).toEqual(next.map((_, index) => `m${index}`));
});

test("a connection that was handed to a worker which dies is closed", async () => {
  await using holding = await startHoldingServer();
  const here = { type: "http", url: holding.listener.url };
  await using crew = await startCrew(file, { mcpServers: { here } }, "--workers", "2");
  const port = await crew.port;
  const [first] = await untilWorkers(crew, 2);
  const pid = first?.pid ?? 0;
  process.kill(pid, "SIGSTOP");
  // One of them is for the worker that cannot take it. The others go to the other worker.
  const calls = Array.from({ length: 6 }, (_, index) => callOnce(port, "here__echo", { name: `n${index}` }));
  let done = 0;
  for (const call of calls) void call.then(() => done++);
  await expect.poll(() => done).toBe(5);
  process.kill(pid, "SIGKILL");
  const ends = await Promise.all(calls);
  expect(ends.filter((end) => /^n\d$/.test(end))).toHaveLength(5);
  expect(ends.filter((end) => end === "ECONNRESET")).toHaveLength(1);
});

test("a stdio server runs once for all workers, and once again when its worker was killed", async () => {
  await using crew = await startCrew(file, { mcpServers: { odd } }, "--workers", "3");
  const port = await crew.port;
  await untilWorkers(crew, 3);
  const mark = async (): Promise<string> => {
    const text = await callOnce(port, "odd__environment", {});
    return /"JUNCTOR_GUARD":"([\w-]+)"/.exec(text)?.[1] ?? text;
  };
  const marks = await Promise.all(Array.from({ length: 9 }, mark));
  expect(new Set(marks).size).toBe(1);
  const owners = crew.log.filter(({ msg, connectMs }) => msg === "odd is up" && connectMs !== undefined);
  expect(owners.length).toBeGreaterThan(0);
  const family = familyOf(crew.process.pid ?? 0);
  const owner = family.pids.find((pid) => /odd-server/.test(commandOf(pid)));
  const worker = parentOf(owner ?? 0);
  process.kill(worker, "SIGKILL");
  await expect.poll(() => isAlive(owner ?? 0)).toBe(false);
  await untilWorkers(crew, 3, [worker]);
  await expect.poll(mark).toMatch(/^[\w-]{36}$/);
  const later = new Set(await Promise.all(Array.from({ length: 9 }, mark)));
  expect([later.size, later.has(marks[0] ?? "")]).toEqual([1, false]);
});

describe("the end of the primary", () => {
  test("by SIGTERM lets calls in flight finish", async () => {
    await using holding = await startHoldingServer();
    const here = { type: "http", url: holding.listener.url };
    await using crew = await startCrew(file, { mcpServers: { here } }, "--workers", "2");
    const port = await crew.port;
    await untilWorkers(crew, 2);
    const calls = Array.from({ length: 6 }, (_, index) =>
      callOnce(port, "here__hold", { name: `n${index}` }),
    );
    await expect.poll(() => holding.begun.length).toBe(6);
    crew.process.kill("SIGTERM");
    await expect.poll(() => callOnce(port, "here__echo", { name: "late" })).not.toBe("late");
    holding.release();
    expect(await Promise.all(calls)).toEqual(calls.map((_, index) => `held n${index}`));
    expect(await crew.exited).toEqual({ code: 0, signal: null });
  });

  test("by SIGKILL leaves no worker, guardian or server", async () => {
    await using crew = await startCrew(file, { mcpServers: { odd } }, "--workers", "3");
    await untilWorkers(crew, 3);
    const family = familyOf(crew.process.pid ?? 0);
    expect(family.pids.length).toBeGreaterThanOrEqual(5);
    crew.process.kill("SIGKILL");
    await crew.exited;
    await expect.poll(() => family.left()).toEqual([]);
  });
});

test("an edit of the config reaches all workers, and a new one begins with what was agreed to", async () => {
  await using holding = await startHoldingServer();
  const here = { type: "http", url: holding.listener.url };
  await using crew = await startCrew(file, { mcpServers: { here } }, "--workers", "3");
  const port = await crew.port;
  const before = await untilWorkers(crew, 3);
  const config = { mcpServers: { here, odd }, junctor: { admin: { port: 0 }, deny: ["here__hold"] } };
  writeFileSync(file, JSON.stringify(config));
  await expect.poll(() => crew.log.flatMap(({ waiting }) => waiting ?? [])).toHaveLength(1);
  expect(crew.log.filter(({ msg }) => msg === "the config was read again")).toHaveLength(1);
  const answers = async (tool: string): Promise<readonly string[]> =>
    Promise.all(
      Array.from({ length: 9 }, () => callOnce(port, tool, tool.startsWith("odd") ? {} : { name: "x" })),
    );
  for (const answer of await answers("here__hold")) expect(answer).toContain("-32602");
  for (const answer of await answers("odd__environment")) expect(answer).toContain("-32602");

  // The server that waits is not started by a worker that is new.
  const gone = before.map(({ pid }) => pid);
  process.kill(gone[0] ?? 0, "SIGKILL");
  await untilWorkers(crew, 3, gone.slice(0, 1));
  for (const answer of await answers("here__hold")) expect(answer).toContain("-32602");
  for (const answer of await answers("odd__environment")) expect(answer).toContain("-32602");

  const { code, stdout } = await junctor(["reload", "--config", file, "--yes"]);
  expect([code, stdout]).toEqual([0, `${file}: taken\n`]);
  for (const answer of await answers("odd__environment")) expect(answer).toContain("JUNCTOR_GUARD");

  // The signal is a person's word too, and does not end the workers.
  const known = (await crew.statuses()).map(({ pid }) => pid);
  writeFileSync(file, JSON.stringify({ ...config, mcpServers: { here, odd, odder: odd } }));
  crew.process.kill("SIGHUP");
  await expect.poll(() => callOnce(port, "odder__environment", {})).toContain("JUNCTOR_GUARD");
  for (const answer of await answers("odder__environment")) expect(answer).toContain("JUNCTOR_GUARD");
  expect((await crew.statuses()).map(({ pid }) => pid)).toEqual(known);
});

test("each worker writes an audit file of its own, and all of them are verified", async () => {
  await using holding = await startHoldingServer();
  const here = { type: "http", url: holding.listener.url };
  const audit = join(folder, "audit.jsonl");
  await using crew = await startCrew(file, { mcpServers: { here }, junctor: { audit } }, "--workers", "2");
  const port = await crew.port;
  await untilWorkers(crew, 2);
  await Promise.all(Array.from({ length: 10 }, () => callOnce(port, "here__echo", { name: "x" })));
  crew.process.kill("SIGTERM");
  await crew.exited;
  const { code, stdout } = await junctor(["audit", "verify", "--config", file, "--json"]);
  const reports = JSON.parse(stdout) as readonly { files: readonly string[]; records: number }[];
  expect([code, reports.map(({ files }) => files)]).toEqual([
    0,
    [[join(folder, "audit.worker-1.jsonl")], [join(folder, "audit.worker-2.jsonl")]],
  ]);
  expect(sum(reports.map(({ records }) => records))).toBe(2 * 10); // The beginning and the end.
  writeFileSync(
    join(folder, "audit.worker-2.jsonl"),
    readFileSync(join(folder, "audit.worker-2.jsonl"), "utf8").replace("here__echo", "here__hold"),
  );
  expect((await junctor(["audit", "verify", audit])).code).toBe(1);
});

test("status, logs and restart are about all workers", async () => {
  await using crew = await startCrew(file, { mcpServers: { odd } }, "--workers", "2");
  await untilWorkers(crew, 2);
  const pid = String(crew.process.pid);
  const shown = await junctor(["status", "--pid", pid]);
  expect(shown.stdout).toMatch(/worker 1 of 2, process \d+[^]*worker 2 of 2, process \d+/);
  const restarted = await junctor(["restart", "odd", "--pid", pid]);
  expect([restarted.code, restarted.stdout]).toEqual([0, "odd is up in worker 1\nodd is up in worker 2\n"]);
  const logs = await junctor(["logs", "--config", file]);
  expect(logs.stdout).toMatch(/worker=1/);
  expect(logs.stdout).toMatch(/worker=2/);
});

describe("what cannot be served is said once", () => {
  test("when the port is taken", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => void taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { readonly port: number };
    const { code, stderr } = await junctor(["serve", "--port", String(port), "--workers", "3"]);
    taken.close();
    expect(stderr).toMatch(/^junctor: .*EADDRINUSE.*; choose another port with --port PORT\n$/);
    expect(code).toBe(3);
  });

  test.each([
    [["--workers", "2", "--stdio"], "--workers is for HTTP: leave out --stdio"],
    [["--workers", "2", "--tcp", "0"], "--workers is for HTTP: leave out --tcp"],
    [["--workers", "0"], '--workers needs a number from 1 to 256, or auto, not "0"'],
    [["--workers", "many"], '--workers needs a number from 1 to 256, or auto, not "many"'],
  ])("when the flags are %j", async (flags, text) => {
    const { code, stderr } = await junctor(["serve", ...flags]);
    expect([code, stderr]).toEqual([2, `junctor: ${text}\n`]);
  });

  test("when a worker is started by hand", async () => {
    const { code, stderr } = await junctor(["serve-worker"]);
    expect([code, stderr]).toEqual([2, "junctor: workers are started by: junctor serve --workers NUMBER\n"]);
  });
});

test("sessions of one worker are served by all", async () => {
  await using crew = await startCrew(file, { mcpServers: { odd } }, "--workers", "3");
  await untilWorkers(crew, 3);
  await using client = await connect(new URL(`http://127.0.0.1:${await crew.port}/mcp`), { era: "legacy" });
  for (let call = 0; call < 6; call++)
    expect(JSON.stringify(await client.callTool("odd__environment"))).toContain("JUNCTOR_GUARD");
});

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}
