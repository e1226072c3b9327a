import { Buffer } from "node:buffer";
import { type ChildProcess, spawn } from "node:child_process";
import { statSync, readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { type Clock, systemClock, timedOut, waitFor } from "@junctor/core/async";
import { Pacer, type LineLimits, createStreamChannel, TextTail } from "@junctor/core/channel";
import { ConnectError, type ConnectKind } from "@junctor/core/errors";
import type { StartProgress } from "@junctor/core/mcp";
import type { Channel } from "@junctor/core/rpc";
import { type Guardian, noGuardian, type GuardedChild } from "./guardian.ts";

interface ChildOptions extends LineLimits {
  /** How long the child may take to exit: after the end of its input, and again after TERM. */
  readonly stageMs?: number | undefined;
  /** Called with each piece that the child writes to its standard error stream. */
  readonly onStderr?: ((chunk: Uint8Array) => void) | undefined;
  /** Called with the first line on the child's standard output that is not a message, cut to 200 characters. */
  readonly onStray?: ((line: string) => void) | undefined;
  /** Ends the child and its descendants when we are killed. Without one they live on. */
  readonly guardian?: Guardian | undefined;
  readonly clock?: Clock;
}

/** A running child. Disposing it closes its channel and ends the child with all its descendants. */
interface Child extends AsyncDisposable {
  readonly channel: Channel;
  readonly pid: number | undefined;
  /** How much it wrote to its standard error stream, and how much processor time it used. */
  progress(): StartProgress;
  /** Resolves with how it ended, in words. */
  readonly exited: Promise<string>;
  /** Resolves when it has ended and everything it wrote was read. */
  readonly ended: Promise<void>;
  /** The end of what it wrote to its standard error stream. */
  readonly stderr: string;
  /** The first line on its standard output that is not a message; empty when there was none. */
  readonly stray: string;
}

/**
 * Starts a program in a process group of its own, without a shell. Rejects with a `ConnectError` when it cannot be
 * started. Its standard error is read all the time, because a full pipe would stop the child, but not as fast as it
 * can write.
 */
export async function spawnChild(command: ChildCommand, options: ChildOptions = {}): Promise<Child> {
  const { stageMs = 2000, clock = systemClock, guardian = noGuardian, onStderr } = options;
  const name = describeCommand(command);
  const spawnCommand = await loadSpawn();
  const start = (mark: { readonly [name: string]: string }): ChildProcess =>
    spawnCommand(command.command, [...(command.args ?? [])], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...toChildEnv(process.env, command.env ?? {}, process.platform), ...mark },
      ...(command.cwd === undefined ? {} : { cwd: command.cwd }),
      // Windows has no process groups; there the tree is found by parentage when it is ended.
      detached: process.platform !== "win32",
      windowsHide: true,
    });
  const { child, release } = await startChild(() => guardian.watch(start), command);
  const { stdin, stdout, stderr } = child;
  if (stdin === null || stdout === null || stderr === null) throw new ConnectError(name, "it has no pipes");
  const tail = new TextTail(16 * 1024);
  const errorOutput = readStderr(stderr, clock, (chunk) => {
    tail.push(chunk);
    onStderr?.(chunk);
  });
  const exited = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) =>
      resolve(signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`),
    );
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  // Whatever the child started goes with it, also when it ends by itself.
  const forget = killOnExit(child.pid);
  void exited.then(() => {
    errorOutput.free(); // Its last words are read without delay.
    forget();
    killTree(child.pid, "SIGKILL");
    release();
  });
  let stray = "";
  const onStray = (line: Uint8Array): void => {
    if (stray !== "") return;
    stray = toShortText(line);
    if (stray !== "") options.onStray?.(stray);
  };
  const channel = createStreamChannel(stdout, stdin, { maxSkippedBytes, ...options, onStray });
  let closing: Promise<void> | undefined;
  const dispose = (): Promise<void> =>
    (closing ??= endChild(
      child,
      () => channel.endOutput(),
      async () => {
        return (await waitFor(exited, { ms: stageMs, clock })) === timedOut;
      },
    ));
  return {
    channel: {
      ...channel,
      [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator](),
      [Symbol.asyncDispose]: dispose,
    },
    pid: child.pid,
    progress: () => ({
      stderrBytes: errorOutput.bytes,
      processorMs: child.pid === undefined ? 0 : (processorMsOf(child.pid) ?? 0),
    }),
    exited,
    ended,
    get stderr() {
      return tail.text;
    },
    get stray() {
      return stray;
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** Reads the standard error stream of a child all the time, but not as fast as the child can write. */
function readStderr(
  stderr: Readable,
  clock: Clock,
  take: (chunk: Uint8Array) => void,
): { readonly bytes: number; free(): void } {
  const pacer = new Pacer({
    ...stderrRate,
    clock,
    pause: () => stderr.pause(),
    resume: () => stderr.resume(),
  });
  let bytes = 0;
  stderr.on("data", (chunk: Uint8Array) => {
    bytes += chunk.length;
    take(chunk);
    pacer.charge(chunk.length);
  });
  stderr.on("error", () => {}); // Its end is not interesting; the child's is.
  return {
    get bytes() {
      return bytes;
    },
    free: () => pacer.free(),
  };
}

/** Ends a child in stages: the end of its input, TERM, KILL. `outlivesStage` waits for one stage. */
async function endChild(
  child: ChildProcess,
  endInput: () => Promise<unknown>,
  outlivesStage: () => Promise<boolean>,
): Promise<void> {
  // Not awaited: a child that does not read must not delay its end.
  void endInput();
  if (await outlivesStage()) {
    killTree(child.pid, "SIGTERM");
    if (await outlivesStage()) killTree(child.pid, "SIGKILL");
  }
  // Only a process that is stuck in the kernel survives KILL. It gets one more stage.
  await outlivesStage();
  child.stdout?.destroy();
  child.stderr?.destroy();
  child.stdin?.destroy();
}

/** Windows alone needs help with scripts and quoting; elsewhere cross-spawn does what Node does, and takes 12 ms to load. */
async function loadSpawn(): Promise<typeof spawn> {
  return process.platform === "win32" ? (await import("cross-spawn")).default.spawn : spawn;
}

/** How fast a child may write to its standard error stream before it has to wait for us. */
const stderrRate = { burstBytes: 1024 * 1024, bytesPerSecond: 256 * 1024 };

/** A line that exceeds the longest message by more than this is taken to be endless. The child must be started again. */
const maxSkippedBytes = 32 * 1024 * 1024;

/** The characters of a stray line that are kept. */
const maxStrayLength = 200;

/** A line for display: without control characters, and cut when it is long. */
function toShortText(line: Uint8Array): string {
  const text = Buffer.from(line.subarray(0, 4 * maxStrayLength)).toString("utf8");
  // oxlint-disable-next-line no-control-regex
  const clean = text.replaceAll(/\u001b\[[0-9;?]*[A-Za-z]|[\u0000-\u001f\u007f-\u009f]/g, "").trim();
  return clean.length > maxStrayLength ? `${clean.slice(0, maxStrayLength - 1)}…` : clean;
}

/** Running children. They lead process groups of their own, so our end would not end them. */
const running = new Set<number>();
const killAll = (): void => running.forEach((pid) => killTree(pid, "SIGTERM"));

function killOnExit(pid: number | undefined): () => void {
  if (pid === undefined) return () => {};
  if (running.size === 0) process.on("exit", killAll);
  running.add(pid);
  return () => {
    running.delete(pid);
    if (running.size === 0) process.off("exit", killAll);
  };
}

/** A program that speaks MCP on its standard input and output. */
export interface ChildCommand {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to the few variables every child gets. */
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
}

/** The command as a person would type it. */
export function describeCommand({ command, args = [] }: ChildCommand): string {
  return [command, ...args]
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word)))
    .join(" ");
}

/**
 * Starts a child. Rejects with a `ConnectError` that says what is missing. Node throws for some of the
 * reasons, and emits `error` for the others.
 */
export async function startChild(
  start: () => GuardedChild<ChildProcess>,
  command: ChildCommand,
): Promise<GuardedChild<ChildProcess>> {
  try {
    const guarded = start();
    await new Promise((resolve, reject) => {
      guarded.child.once("spawn", resolve);
      guarded.child.once("error", reject);
    });
    return guarded;
  } catch (error) {
    const kind = kindOf(error as Error, command);
    const reason = describeKind(kind, error as Error, command);
    throw new ConnectError(describeCommand(command), reason, { kind, cause: error });
  }
}

/** The system reports a missing program and a missing folder alike, so check the folder. */
function kindOf({ code }: NodeJS.ErrnoException, { cwd }: ChildCommand): ConnectKind {
  if (cwd !== undefined && (code === "ENOENT" || code === "ENOTDIR") && !isFolder(cwd)) return "no_folder";
  if (code === "ENOENT") return "no_program";
  return code === "EACCES" ? "not_executable" : "other";
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // It does not exist, or lies in something that is not a folder.
  }
}

function describeKind(kind: ConnectKind, { message }: Error, { command, cwd }: ChildCommand): string {
  const program = JSON.stringify(command);
  if (kind === "no_folder") return `there is no folder ${JSON.stringify(cwd)} to run ${program} in`;
  if (kind === "no_program") return `there is no program ${program} here`;
  if (kind !== "not_executable") return message;
  return `${program} may not be run: it is a folder, or a file that is not executable`;
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** The variables that every child inherits: paths, the locale and the user. */
const posix = words("HOME LOGNAME PATH SHELL TERM USER LANG LC_ALL LC_CTYPE TMPDIR TZ");
const windows = words(`
  APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT
  TEMP TMP USERNAME USERPROFILE
`);

/**
 * How programs on this machine reach the network, and where launchers (npx, uvx, docker, deno, bun) keep their files.
 * Behind a company's proxy, a launcher needs these before it can start a server. Names in any case, because proxies and
 * npm's settings are written in both.
 */
const network = words(`
  HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NODE_USE_ENV_PROXY
  NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA SSL_CERT_FILE SSL_CERT_DIR
  CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO DENO_CERT UV_NATIVE_TLS
  XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
  NPM_CONFIG_CACHE NPM_CONFIG_CAFILE NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_USERCONFIG
  NPM_CONFIG_PROXY NPM_CONFIG_HTTPS_PROXY NPM_CONFIG_NOPROXY NPM_CONFIG_PREFIX
  PIP_CACHE_DIR PIP_CONFIG_FILE UV_CACHE_DIR UV_CONFIG_FILE UV_PYTHON_INSTALL_DIR UV_TOOL_DIR
  DENO_DIR BUN_INSTALL BUN_INSTALL_CACHE_DIR
  DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY CONTAINER_HOST
`);

/** Where packages come from. People put keys into these URLs; one with a user or password is not passed on. */
const packageSources = words(`
  NPM_CONFIG_REGISTRY PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL
`);

const inAnyCase = new Set([...network, ...packageSources]);
const withoutCredentials = new Set(packageSources);

/** A URL that names a user, somewhere in a value that may hold several. */
const userInUrl = /\/\/[^/\s]*@/;

/**
 * The environment of a child: a short list of ours, and what the user names. Our other variables are not passed on,
 * because they may hold keys.
 */
export function toChildEnv(
  own: NodeJS.ProcessEnv,
  named: { readonly [name: string]: string | undefined },
  platform: NodeJS.Platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const allowed = new Set(isWindows ? windows : posix);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const upper = name.toUpperCase();
    const isAllowed = allowed.has(isWindows ? upper : name) || inAnyCase.has(upper);
    // A value that begins like a shell function is one (CVE-2014-6271); no child needs ours.
    if (!isAllowed || value === undefined || value.startsWith("()")) continue;
    if (withoutCredentials.has(upper) && userInUrl.test(value)) continue;
    env[name] = value;
  }
  for (const [name, value] of Object.entries(named)) if (value !== undefined) env[name] = value;
  return env;
}

/** Linux counts processor time in these units, whatever the kernel's own timer does. */
const msPerTick = 10;

/** The most processes of one tree that are counted. */
const maxProcesses = 256;

/**
 * The processor time that a process and its descendants used so far, in milliseconds, including that of descendants that
 * have ended. Undefined where the system does not tell: only Linux has `/proc`.
 */
export function processorMsOf(pid: number): number | undefined {
  let ticks: number | undefined;
  const pending = [pid];
  for (let seen = 0; pending.length > 0 && seen < maxProcesses; seen++) {
    const next = pending.pop();
    if (next === undefined) break;
    const used = ticksOf(next);
    if (used === undefined) continue;
    ticks = (ticks ?? 0) + used;
    pending.push(...childrenOf(next));
  }
  return ticks === undefined ? undefined : ticks * msPerTick;
}

/** The fields `utime`, `stime`, `cutime` and `cstime` of proc(5), added up. */
function ticksOf(pid: number): number | undefined {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The second field is the program's name in brackets, which may hold blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
}

function childrenOf(pid: number): readonly number[] {
  const text = read(`/proc/${pid}/task/${pid}/children`) ?? "";
  return text
    .split(" ")
    .filter((id) => id !== "")
    .map(Number);
}

/** Undefined when the process is gone, or there is no such file here. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

/** How a child and its descendants are ended on a platform. */
type KillPlan =
  | { readonly kind: "signal"; readonly pid: number; readonly signal: "SIGTERM" | "SIGKILL" }
  | { readonly kind: "command"; readonly command: string; readonly args: readonly string[] };

/**
 * On POSIX the child leads a process group, so one signal to its negative id reaches all of them. On Windows `taskkill`
 * finds them by parentage (/T), and without /F it would ask windows that console programs do not have.
 */
export function planKill(pid: number, signal: "SIGTERM" | "SIGKILL", platform: NodeJS.Platform): KillPlan {
  if (platform === "win32")
    return { kind: "command", command: "taskkill", args: ["/pid", String(pid), "/T", "/F"] };
  return { kind: "signal", pid: -pid, signal };
}

/** Ends a child and its descendants. */
export function killTree(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  const plan = planKill(pid, signal, process.platform);
  if (plan.kind === "command") {
    const killer = spawn(plan.command, [...plan.args], { stdio: "ignore", windowsHide: true });
    killer.on("error", () => {}); // Without taskkill nothing can be done.
    return;
  }
  try {
    process.kill(plan.pid, plan.signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // ESRCH: all of them are gone already. EPERM: the rest belongs to another user now, or waits to be reaped.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
