import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { bin } from "../../support/junctor-bin.ts";
import { isAlive } from "../../support/processes.ts";

/** `junctor serve` in a process of its own, as it was built: `node scripts/setup.mjs` first. */
export interface CliGateway extends AsyncDisposable {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** The port it listens on, once it does. */
  readonly port: Promise<number>;
  /** What it logged so far, line by line. */
  readonly log: readonly LogEntry[];
  /** What it wrote to its standard output so far. */
  output(): string;
}

/** A line of its log. */
export interface LogEntry {
  readonly msg: string;
  readonly [fact: string]: unknown;
}

/** Starts it with a config file. Disposing kills it. */
export function startCliGateway(config: string, ...args: readonly string[]): CliGateway {
  const child = spawn(process.execPath, [bin, "serve", "--config", config, "--log-level", "debug", ...args]);
  const exited = once(child, "exit").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  const log: LogEntry[] = [];
  let stdout = "";
  let stderr = "";
  child.stdin.on("error", () => {}); // It may end without reading.
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    const lines = (stderr + text).split("\n");
    stderr = lines.pop()!;
    log.push(...lines.filter(Boolean).map(toEntry));
  });
  const port = new Promise<number>((resolve, reject) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      const found = /http:\/\/127\.0\.0\.1:([0-9]+)\/mcp/.exec(stdout);
      if (found !== null) resolve(Number(found[1]));
    });
    void exited.then(() =>
      reject(new Error(`It ended before it listened: ${stdout} ${JSON.stringify(log)}`)),
    );
  });
  port.catch(() => {}); // Not everybody waits for it.
  return {
    process: child,
    exited,
    port,
    log,
    output: () => stdout,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly mark: string | undefined;
}

/** What Node itself says when it cannot even start is not JSON. */
function toEntry(line: string): LogEntry {
  return line.startsWith("{") ? (JSON.parse(line) as LogEntry) : { msg: line };
}

/** Processes of one origin. */
export interface Family {
  readonly pids: readonly number[];
  /** Those that are left of it, and what they started since. */
  left(): readonly number[];
}

/** The descendants of a process, and whoever has the guardian's mark of one of them. Only where there is `/proc`. */
export function familyOf(pid: number): Family {
  const all = listProcesses();
  const below = (parent: number): readonly Process[] =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  const descendants = below(pid);
  const marks = new Set(descendants.flatMap(({ mark }) => mark ?? []));
  const isMarked = ({ mark }: Process): boolean => mark !== undefined && marks.has(mark);
  const own = new Set(all.filter((one) => descendants.includes(one) || isMarked(one)).map((one) => one.pid));
  return {
    pids: [...own],
    left: () => {
      const marked = listProcesses().filter(isMarked);
      return [...new Set([...own, ...marked.map((one) => one.pid)])].filter(isAlive);
    },
  };
}

function listProcesses(): readonly Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const read = (file: string): string => readFileSync(`/proc/${name}/${file}`, "utf8");
        const parent = Number(/^PPid:\s*(\d+)/m.exec(read("status"))?.[1]);
        const mark = /JUNCTOR_GUARD=([^\0]+)/.exec(read("environ"))?.[1];
        return [{ pid: Number(name), parent, mark }];
      } catch {
        return []; // It ended while we looked, or is another user's.
      }
    });
}
