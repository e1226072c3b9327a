import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startLoad } from "../../../test/gateway/support/load.ts";
import { fixture, makeFolder, startGateway, until } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale, toText } from "../lib/row.ts";

const bin = fileURLToPath(new URL("../../../packages/junctor/dist/cli/main.js", import.meta.url));
const work = { command: process.execPath, args: [fixture("children/chaos-server.mjs")] };

/** A file system of 256 KB, where we may mount one; undefined elsewhere. */
function mountSmallDisk(): string | undefined {
  const folder = makeFolder();
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]);
  if (status !== 0) return undefined;
  process.on("exit", () => spawnSync("umount", ["-l", folder]));
  return folder;
}

interface Tally {
  readonly calls: number;
  readonly results: number;
  readonly wrong: number;
  readonly reasons: readonly string[];
}

/** The tool answers with its nonce and its process; a refusal is a text for the model. */
const isServed = (text: string): boolean => /^n\d+ \d+$/.test(text);

async function callFor(port: number, calls: number): Promise<Tally> {
  const load = await startLoad({ port, servers: ["s"], callsPerSecond: 200 });
  await load.made(calls);
  const records = await load.stop();
  const refusals = records.flatMap(({ outcome }) =>
    outcome.kind === "error"
      ? [outcome.code]
      : outcome.kind === "result" && !isServed(outcome.text)
        ? [outcome.text.slice(0, 80)]
        : [],
  );
  return {
    calls: records.length,
    results: records.filter(({ outcome }) => outcome.kind === "result" && isServed(outcome.text)).length,
    wrong: records.filter(({ outcome }) => outcome.kind === "wrong").length,
    reasons: [...new Set(refusals)],
  };
}

/** Refused while the disk is full, unless the config says otherwise; served again when there is room; no torn line. */
function fillAudit(disk: string, calls: number, onFailure: "closed" | "open"): Promise<Line> {
  const isClosed = onFailure === "closed";
  const file = join(disk, "audit.jsonl");
  const ballast = join(disk, "ballast");
  const line = {
    what: `the disk of the audit is full, \`onFailure: "${onFailure}"\``,
    count: "1 time",
    bound: isClosed
      ? "calls without a record are refused, the log says why, served again when there is room; `junctor audit verify` finds no fault"
      : "every call is served, the log says that records are lost; `junctor audit verify` finds no fault",
  };
  return attempt(line, async () => {
    rmSync(file, { force: true });
    writeFileSync(ballast, Buffer.alloc(200_000));
    const config = { mcpServers: { s: work }, junctor: { audit: { file, onFailure } } };
    await using gateway = await startGateway(config);
    const full = await callFor(gateway.port, calls);
    rmSync(ballast);
    const after = await callFor(gateway.port, 20);
    // A line that was cut short is ended, and the next line says so.
    const { status, stdout } = spawnSync(process.execPath, [bin, "audit", "verify", file], {
      encoding: "utf8",
    });
    const verdict = stdout.trim().split("\n").at(-1) ?? "";
    const isTold = /"level":(40|50|"warn"|"error").*audit/i.test(gateway.output());
    const isRight = isClosed ? full.results < full.calls : full.results === full.calls;
    const [reason = "none"] = full.reasons;
    return {
      count: `${toText(full.calls)} calls`,
      figure:
        `${full.results} served, ${full.calls - full.results} refused (${reason}), ${isTold ? "told" : "not told"} in the log, ` +
        `${after.results} of ${after.calls} served after; verify: ${verdict.replaceAll(disk, "")}`,
      isMet: isRight && isTold && after.results === after.calls && status === 0,
    };
  }).finally(() => {
    for (const each of [file, ballast]) rmSync(each, { force: true });
  });
}

async function fillListMemory(disk: string, calls: number): Promise<Line> {
  const cache = join(disk, "cache");
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(disk, "ballast"), Buffer.alloc(300_000).subarray(0, roomOf(disk)));
  await using gateway = await startGateway({ mcpServers: { s: work } }, { env: { XDG_CACHE_HOME: cache } });
  const { calls: made, results } = await callFor(gateway.port, calls);
  rmSync(join(disk, "ballast"));
  return {
    what: "the disk of the list memory is full",
    count: `${toText(made)} calls`,
    bound: "every call is served",
    figure: `${results} of ${made} served`,
    isMet: results === made,
  };
}

/** Bytes that are free there. */
function roomOf(disk: string): number {
  const { stdout } = spawnSync("stat", ["-f", "-c", "%a %S", disk], { encoding: "utf8" });
  const [blocks = 0, size = 0] = stdout.trim().split(" ").map(Number);
  return blocks * size;
}

async function fillLog(calls: number): Promise<Line> {
  // Everything it writes to standard error fails with ENOSPC.
  const under = ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"];
  await using gateway = await startGateway({ mcpServers: { s: work } }, { under, logLevel: "debug" });
  const { calls: made, results } = await callFor(gateway.port, calls);
  return {
    what: "the disk of the log is full (standard error is /dev/full, level debug)",
    count: `${toText(made)} calls`,
    bound: "every call is served, the process lives",
    figure: `${results} of ${made} served, ${gateway.child.exitCode === null ? "alive" : "dead"}`,
    isMet: results === made && gateway.child.exitCode === null,
  };
}

/** More sockets than there are descriptors: new ones wait or fail, nothing dies, and all is well afterwards. */
async function useUpDescriptors(sockets: number): Promise<Line> {
  const under = ["prlimit", "--nofile=128"];
  await using gateway = await startGateway({ mcpServers: { s: work } }, { under });
  const { port } = gateway;
  const all = Array.from({ length: sockets }, () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    return socket;
  });
  await until(() => openFiles(gateway.pid) >= 120, 5000);
  const most = openFiles(gateway.pid);
  for (const socket of all) socket.destroy();
  await until(() => openFiles(gateway.pid) < 80, 10_000);
  const { calls, results } = await callFor(port, 50);
  return {
    what: "EMFILE: more sockets than the process may have descriptors (128)",
    count: `${toText(sockets)} sockets`,
    bound: "the process lives, and every call afterwards is served",
    figure: `${most} descriptors in use, then ${results} of ${calls} calls served`,
    isMet: gateway.child.exitCode === null && results === calls && most >= 100,
  };
}

function openFiles(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return 0;
  }
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const calls = scale === "full" ? 2000 : 100;
  const disk = mountSmallDisk();
  const onDisk =
    disk === undefined
      ? []
      : [
          await fillAudit(disk, Math.max(calls, 400), "closed"),
          await fillAudit(disk, Math.max(calls, 400), "open"),
          await fillListMemory(disk, calls),
        ];
  const skipped: Line = {
    what: "the disk of audit and list memory is full",
    count: "0",
    bound: "needs the right to mount",
    figure: "not run here",
    isMet: scale === "short",
  };
  return [
    ...(disk === undefined ? [skipped] : onDisk),
    await fillLog(calls),
    await useUpDescriptors(scale === "full" ? 2000 : 300),
  ];
}

export const row: Row = {
  title: "Full disks and no descriptors",
  how: "`junctor serve` on a file system of 256 KB, with `/dev/full` as standard error, and with 128 file descriptors.",
  limitMinutes: 10,
  isInShort: true,
  run,
};
