import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { bin, junctor, type Run } from "./junctor-bin.ts";
import { isAlive } from "./processes.ts";
import { type FrameReader, isAnswer, readFrames, toLine } from "./raw-wire.ts";
import type { Frame } from "./wire-schema.ts";

/** The command of a server that tells of its process. */
export const notedServer: readonly string[] = [
  process.execPath,
  fileURLToPath(new URL("../fixtures/daemon-server.mjs", import.meta.url)),
];

/** A front: `junctor attach` in a process of its own. */
export interface TestFront extends FrameReader {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<unknown>;
  stderr(): string;
  send(message: string | object): void;
  request(method: string, params?: object): Promise<Frame>;
  /** The text that a tool gives. */
  call(name: string, args?: object): Promise<string>;
  /** The handshake of the legacy era. */
  shake(capabilities?: object): Promise<Frame>;
  leave(): Promise<void>;
}

/** A home folder with a config, and everything that was started for it. Disposing it ends all of that. */
export interface DaemonHome extends AsyncDisposable {
  readonly folder: string;
  readonly config: string;
  readonly env: { readonly [name: string]: string };
  write(config: object): void;
  attach(options?: AttachOptions): TestFront;
  junctor(...args: readonly string[]): Promise<Run>;
  /** The daemons that run; more than one only for a moment. */
  daemons(): readonly number[];
  /** Every process that was started for this home. */
  processes(): readonly number[];
  log(): string;
}

interface AttachOptions {
  readonly args?: readonly string[];
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
}

/** The servers of a config by their names, all the same. */
export function notedServers(names: readonly string[], more: object = {}): object {
  const [command, ...args] = notedServer;
  return Object.fromEntries(names.map((name) => [name, { command, args, ...more }]));
}

export function createDaemonHome(config: object): DaemonHome {
  const folder = mkdtempSync(join(tmpdir(), "jd-"));
  const mark = folder;
  const file = join(folder, ".junctor", "junctor.json");
  mkdirSync(join(folder, ".junctor"), { mode: 0o700 });
  const env = {
    HOME: folder,
    XDG_RUNTIME_DIR: "",
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
    NO_COLOR: "1",
  };
  const fronts: TestFront[] = [];
  const write = (value: object): void => writeFileSync(file, JSON.stringify(value, null, 2), { mode: 0o600 });
  write(config);
  const home: DaemonHome = {
    folder,
    config: file,
    env,
    write,
    attach: ({ args = [], env: more = {}, cwd = folder } = {}) => {
      const front = openFront(
        spawn(process.execPath, [bin, "attach", ...args], { cwd, env: { ...process.env, ...env, ...more } }),
      );
      fronts.push(front);
      return front;
    },
    junctor: (...args) => junctor(args, { env, cwd: folder }),
    daemons: () => findProcesses(mark).filter((pid) => readCommand(pid).includes(" daemon ")),
    processes: () => findProcesses(mark),
    log: () => readLogs(join(folder, "state", "junctor", "daemon")),
    [Symbol.asyncDispose]: async () => {
      for (const front of fronts) front.process.kill("SIGKILL");
      for (const pid of home.daemons()) process.kill(pid, "SIGTERM");
      await expect.poll(() => home.processes()).toEqual([]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return home;
}

/** A front, or anything else that speaks MCP on its standard streams, worked by hand. */
export function openFront(child: ChildProcessWithoutNullStreams): TestFront {
  const reader = readFrames(child.stdout);
  let stderr = "";
  let ids = 0;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => {});
  const exited = once(child, "close");
  const send = (message: string | object): void => void child.stdin.write(toLine(message));
  const front: TestFront = {
    ...reader,
    process: child,
    exited,
    stderr: () => stderr,
    send,
    request: (method, params = {}) => {
      const id = ++ids;
      send({ jsonrpc: "2.0", id, method, params });
      const gone = exited.then(() => {
        throw new Error(`The front ended instead of answering ${method}. ${stderr}`);
      });
      return Promise.race([reader.take((frame) => isAnswer(frame, id)), gone]);
    },
    call: async (name, args = {}) => {
      const { result, error } = (await front.request("tools/call", { name, arguments: args })) as {
        result?: { content: readonly { text: string }[] };
        error?: object;
      };
      return result?.content[0]?.text ?? JSON.stringify(error);
    },
    shake: async (capabilities = {}) => {
      const clientInfo = { name: "test", version: "1" };
      const params = { protocolVersion: "2025-11-25", capabilities, clientInfo };
      const answer = await front.request("initialize", params);
      send({ jsonrpc: "2.0", method: "notifications/initialized" });
      return answer;
    },
    leave: async () => {
      child.stdin.end();
      await exited;
    },
  };
  return front;
}

/** Processes whose environment has the home folder, or that were started with it. Linux only. */
function findProcesses(mark: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && isAlive(pid))
    .filter((pid) => readOf(pid, "environ").includes(`HOME=${mark}`) || readCommand(pid).includes(mark));
}

function readCommand(pid: number): string {
  return readOf(pid, "cmdline").replaceAll("\0", " ");
}

function readOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

function readLogs(folder: string): string {
  if (!existsSync(folder)) return "";
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
}
