import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const bin = fileURLToPath(new URL("../../../packages/junctor/dist/cli/main.js", import.meta.url));

/** A file of `test/fixtures`, to be started as a server. */
export function fixture(name: string): string {
  return fileURLToPath(new URL(`../../../test/fixtures/${name}`, import.meta.url));
}

/** A file of `proof/attacks/servers`. */
export function hostile(name: string): string {
  return fileURLToPath(new URL(`../servers/${name}`, import.meta.url));
}

export interface GatewayOptions {
  readonly env?: { readonly [name: string]: string };
  readonly logLevel?: string;
  /** Put before the program: `["prlimit", "--nofile=64"]`, `["nice", "-n", "5"]`. */
  readonly under?: readonly string[];
  readonly nodeArgs?: readonly string[];
  /** Passed to `junctor serve`; the default listens on a free HTTP port. */
  readonly args?: readonly string[];
}

/** `junctor serve` as it was built, in a process and folders of its own. */
export interface ServedGateway extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly port: number;
  readonly folder: string;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** Everything it wrote to its standard streams, up to 64 MB. */
  output(): string;
}

/** A folder that is removed when this process ends. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "junctor-scorecard-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a gateway and resolves when every server of its config is listed or has failed. */
export async function startGateway(config: object, options: GatewayOptions = {}): Promise<ServedGateway> {
  const folder = makeFolder();
  const file = join(folder, "gateway.json");
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  const { under = [], nodeArgs = [], logLevel = "info", args = ["--port", "0"] } = options;
  const serve = [bin, "serve", "--config", file, "--log-level", logLevel, ...args];
  const [command = process.execPath, ...words] = [...under, process.execPath, ...nodeArgs, ...serve];
  const env = {
    ...process.env,
    XDG_CACHE_HOME: join(folder, "cache"),
    XDG_STATE_HOME: join(folder, "state"),
  };
  const child = spawn(command, words, { env: { ...env, ...options.env }, stdio: ["pipe", "pipe", "pipe"] });
  const exited = once(child, "exit").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
  }));
  const pieces: string[] = [];
  let length = 0;
  const add = (text: string): void => {
    if (length < 64 * 2 ** 20) pieces.push(text);
    length += text.length;
    see();
  };
  let see = (): void => {};
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", add);
  const output = (): string => pieces.join("");
  const started = new Promise<number>((resolve) => {
    see = () => {
      const found = /http:\/\/127\.0\.0\.1:([0-9]+)\/mcp/.exec(output());
      // The greeting ends with how the servers are, once that is known.
      if (found === null || !/servers? (is|are) up:/.test(output())) return;
      see = () => {};
      resolve(Number(found[1]));
    };
  });
  const early = exited.then(({ code, signal }) => {
    throw new Error(`The gateway ended with ${code ?? signal}: ${output().slice(-2000)}`);
  });
  early.catch(() => {});
  const port = await Promise.race([started, early]);
  return {
    child,
    pid: child.pid ?? 0,
    port,
    folder,
    exited,
    output,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

/** Memory of a process in bytes, as the kernel counts it. */
export function readMemory(pid: number): { readonly now: number; readonly peak: number } {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { now: read("VmRSS"), peak: read("VmHWM") };
}

/** Processor time of one process in milliseconds, without its children. */
export function readCpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Resolves when the condition holds; false after the time. For conditions that have no event. */
export async function until(condition: () => boolean | Promise<boolean>, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return true;
}

/** Children of a process, with their command lines. */
export function childrenOf(pid: number): readonly { readonly pid: number; readonly command: string }[] {
  const read = (path: string): string => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return ""; // It ended while we looked.
    }
  };
  return read(`/proc/${pid}/task/${pid}/children`)
    .split(" ")
    .filter(Boolean)
    .map((child) => ({ pid: Number(child), command: read(`/proc/${child}/cmdline`).replaceAll("\0", " ") }));
}
