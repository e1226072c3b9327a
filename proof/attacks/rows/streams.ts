import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { quantile } from "../../../test/gateway/support/slice.ts";
import { mirrored, modernCall, postOf } from "../../../test/support/http-wire.ts";
import { RawSocket, toBytes } from "../../../test/support/raw-http.ts";
import { hostile, readMemory, until } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale, toMegabytes, toText } from "../lib/row.ts";

/** The benchmark of streams, which also checks that every one of them hears of a change. */
function countIdle(count: number): Promise<Line> {
  const line = {
    what: "idle `subscriptions/listen` streams, each told of a change at the end",
    count: `${toText(count)} streams`,
    bound: "at most 30 KB each",
  };
  return attempt(line, async () => {
    const bench = fileURLToPath(new URL("../../bench/streams.mjs", import.meta.url));
    const child = spawn(process.execPath, [bench, String(count)], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    await once(child, "close");
    const each = Number(/resident memory\s+([\d.]+) KiB/.exec(output)?.[1]);
    const told = /telling all .*/.exec(output)?.[0] ?? "not all were told";
    return { figure: `${each} KiB each; ${told}`, isMet: each <= 30 && told.startsWith("telling") };
  });
}

interface Host extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
}

async function startHost(): Promise<Host> {
  const child = spawn(process.execPath, [hostile("flood-host.mjs")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  const exited = once(child, "exit");
  return {
    pid: child.pid ?? 0,
    port: Number(port.toString()),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function callMany(
  port: number,
  calls: number,
): Promise<{ readonly medianMs: number; readonly failures: number }> {
  using socket = new RawSocket(port);
  const times: number[] = [];
  let failures = 0;
  for (let call = 0; call < calls; call++) {
    const startedAt = performance.now();
    const frame = modernCall("echo");
    const { status } = await socket.send(postOf(frame, mirrored(frame))).complete;
    if (status !== 200) failures++;
    times.push(performance.now() - startedAt);
  }
  return { medianMs: quantile(times, 0.5), failures };
}

/** Readers that take nothing of a stream that never ends. */
function stall(readers: number): Promise<Line> {
  const line = {
    what: "readers that ask for an endless stream and take nothing of it",
    count: `${toText(readers)} readers`,
    bound: "each is cut after `stallMs` (5 s here), at most 256 KB each in the process, others' failures 0",
  };
  return attempt(line, async () => {
    await using host = await startHost();
    const alone = await callMany(host.port, 100);
    const before = readMemory(host.pid).now;
    const frame = modernCall("flood", {}, { _meta: { progressToken: 1 } });
    const bytes = toBytes(postOf(frame, mirrored(frame)), `127.0.0.1:${host.port}`);
    const sockets = Array.from({ length: readers }, () => {
      const socket = connect(host.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.write(bytes);
      socket.pause();
      return socket;
    });
    const beside = await callMany(host.port, 100);
    const isCut = await until(() => openStreams(host.port) === 0, 180_000);
    const each = (readMemory(host.pid).peak - before) / readers;
    for (const socket of sockets) socket.destroy();
    const after = await callMany(host.port, 100);
    const failures = alone.failures + beside.failures + after.failures;
    return {
      figure:
        `${isCut ? "all were cut" : `${openStreams(host.port)} were not cut`}, ${toMegabytes(each)} each at most, ${failures} failures; ` +
        `calls took ${alone.medianMs.toFixed(1)} ms before, ${beside.medianMs.toFixed(1)} ms beside, ${after.medianMs.toFixed(1)} ms after (median)`,
      isMet: isCut && each <= 256 * 1024 && failures === 0,
    };
  });
}

/** Established sockets of a local port, from the kernel's table. */
function openStreams(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const rows = readFileSync("/proc/net/tcp", "utf8").split("\n");
  return rows.filter((row) => new RegExp(`^\\s*\\d+: [0-9A-F]+:${hex} [0-9A-F]+:[0-9A-F]+ 01`).test(row))
    .length;
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const isFull = scale === "full";
  // Not fewer: the memory that the process takes once is counted too.
  return [await countIdle(isFull ? 10_000 : 5000), await stall(isFull ? 2000 : 600)];
}

export const row: Row = {
  title: "Idle streams and slow readers",
  how: "One server process over HTTP; memory as the kernel counts it (resident pages).",
  limitMinutes: 20,
  isInShort: true,
  run,
};
