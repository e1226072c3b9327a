import { connect } from "node:net";
import { type Program, startProgram, until } from "./program.ts";

/** A Redis of Debian on a port of loopback. It keeps nothing on disk, so a restart forgets everything. */
export interface Engine extends AsyncDisposable {
  readonly url: string;
  readonly pid: number | undefined;
  kill(signal?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  /** Sends a signal and does not wait for anything: SIGSTOP and SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when it has run for so long that it gives leases: replicas take none of an engine that may have forgotten some. */
  untilTrusted(): Promise<void>;
  /** How often each command was carried out since its start, our own left out. */
  commands(): Promise<ReadonlyMap<string, number>>;
}

export async function startEngine(
  port: number,
  folder: string,
  more: readonly string[] = [],
): Promise<Engine> {
  const args = [
    ["--port", String(port)],
    ["--bind", "127.0.0.1"],
    ["--save", ""],
    ["--appendonly", "no"],
    ["--dir", folder],
  ];
  let program: Program;
  const start = async (): Promise<void> => {
    program = startProgram("redis-server", [...args.flat(), ...more]);
    await until("Redis answers", async () => (await askEngine(port, "PING")) !== undefined, program);
  };
  await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return program.child.pid;
    },
    start,
    kill: (signal = "SIGKILL") => program.end(signal),
    signal: (signal) => void program.child.kill(signal),
    untilTrusted: () =>
      until("Redis has run for some seconds", async () => (await uptimeOf(port)) > trustedSeconds, program),
    commands: async () => parseCommands((await askEngine(port, "INFO commandstats")) ?? ""),
    [Symbol.asyncDispose]: () => program.end(),
  };
}

/** As long as the longest lease that an earlier run of the engine may have given. */
const trustedSeconds = 10;

async function uptimeOf(port: number): Promise<number> {
  const info = (await askEngine(port, "INFO server")) ?? "";
  return Number(/^uptime_in_seconds:(\d+)/m.exec(info)?.[1] ?? 0);
}

/** Sends one inline command. Undefined when there is no engine. */
async function askEngine(port: number, command: string): Promise<string | undefined> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {}); // It closes then.
  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
    if (isWhole(text)) socket.end();
  });
  socket.write(`${command}\r\n`);
  await new Promise((resolve) => socket.on("close", resolve));
  return isWhole(text) ? text.replace(/^(?:\+|\$\d+\r\n)/, "").trim() : undefined;
}

function isWhole(text: string): boolean {
  const length = /^\$(\d+)\r\n/.exec(text);
  if (length === null) return /^[+-]/.test(text) && text.endsWith("\r\n");
  return text.length >= length[0].length + Number(length[1]) + 2;
}

function parseCommands(info: string): ReadonlyMap<string, number> {
  const lines = info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm);
  const counts = [...lines].map(([, name = "", calls]): [string, number] => [name, Number(calls)]);
  return new Map(counts.filter(([name]) => name !== "ping" && name !== "info"));
}
