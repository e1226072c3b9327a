import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join, sep } from "node:path";
import type { ChildCommand } from "@junctor/client";
import { defined } from "@junctor/core/options";
import type { ServerLaunch } from "./entry-rows.ts";
import type { SandboxConfig } from "./server-rows.ts";
import { cacheFolder, stateFolder } from "./user-files.ts";

/** Where systems keep programs, libraries and settings; what does not exist is left out. */
const system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix"];

/** Where the settings for host names link to on some systems. */
const forNetwork = ["/run/systemd/resolve", "/run/NetworkManager"];

/** Own namespaces, no capability, and no life beyond that of the gateway. */
const apart = "--unshare-all --die-with-parent --cap-drop ALL".split(" ");

/** The most that a server may write to its own empty folders. */
const scratchBytes = 64 * 1024 * 1024;

/** The command that starts a server, in its sandbox if it has one. */
export function toTarget(
  { command, args, env, cwd }: Extract<ServerLaunch, { readonly kind: "command" }>,
  sandbox: SandboxConfig | undefined,
): ChildCommand {
  const target = { command, args, env, ...defined({ cwd }) };
  return sandbox === undefined ? target : toSandboxed(target, sandbox);
}

/**
 * The command that runs a server in a sandbox: with processes of its own, an empty home and `/tmp`, the folders of the system
 * and those the config names, and no network unless it is wanted. A part that cannot be made ends the start with an error of
 * `bwrap`: the server is never run without it.
 */
function toSandboxed(server: ChildCommand, sandbox: SandboxConfig): ChildCommand {
  const { command, args = [], env = {}, cwd } = server;
  const program = findProgram(command, env["PATH"] ?? process.env["PATH"] ?? "");
  // What lies in a writable folder is mounted with it. Mounted by itself, it could be a link that the server made.
  const own = [...(cwd === undefined ? [] : [cwd]), ...program].filter(
    (path) => !sandbox.write.some((folder) => isWithin(path, folder)),
  );
  const read = [...sandbox.read, ...own];
  const flags = [
    ...baseFlags(sandbox),
    ...toBinds(read, sandbox.write),
    // Last, because mounts make folders in these. Each is memory, of which a server could fill half of the machine's.
    ...["/dev", "/"].flatMap((path) =>
      sandbox.write.includes(path) || sandbox.read.includes(path) ? [] : ["--remount-ro", path],
    ),
    "--chdir",
    cwd ?? "/",
    "--",
    ...toLimits(sandbox),
    command,
    ...args,
  ];
  return { command: locate("bwrap"), args: flags, env };
}

/** Every sandbox has these mounts. The root comes first, because a later mount hides an earlier one. */
function baseFlags({ network, read, write }: SandboxConfig): readonly string[] {
  const all = [...read, ...write];
  const home = homedir();
  return [
    ...apart,
    ...(network ? ["--share-net"] : []),
    ...(write.includes("/") ? ["--bind", "/", "/"] : read.includes("/") ? ["--ro-bind", "/", "/"] : []),
    ...[...system, ...(network ? forNetwork : [])].flatMap((path) => ["--ro-bind-try", path, path]),
    // Root could change the system through /proc/sys.
    ..."--proc /proc --remount-ro /proc --dev /dev".split(" "),
    ...sized("/dev/shm"),
    ...(all.includes("/tmp") ? [] : sized("/tmp")),
    ...(all.some((path) => isWithin(home, path)) ? [] : sized(home)),
  ];
}

function toBinds(read: readonly string[], write: readonly string[]): readonly string[] {
  const flagOf = new Map([
    ...read.map((path) => [path, "--ro-bind"] as const),
    ...write.map((path) => [path, "--bind"] as const),
  ]);
  flagOf.delete("/");
  const paths = [...flagOf.keys()].toSorted((a, b) => a.length - b.length);
  const binds = paths.flatMap((path) => [flagOf.get(path) ?? "--ro-bind", path, path]);
  // The secret of sessions, the sockets of gateways, remembered lists: no server gets them with a folder that contains them.
  const hidden = [stateFolder(), cacheFolder()].filter(
    (folder) => existsSync(folder) && [...read, ...write].some((path) => isWithin(folder, path)),
  );
  return [...binds, ...hidden.flatMap(sized)];
}

function toLimits({ memoryMb, processes }: Pick<SandboxConfig, "memoryMb" | "processes">): readonly string[] {
  if (memoryMb === undefined && processes === undefined) return [];
  const memory = memoryMb === undefined ? [] : [`--data=${memoryMb * 1024 * 1024}`];
  const tasks = processes === undefined ? [] : [`--nproc=${processes}`];
  return [locate("prlimit"), ...memory, ...tasks, "--"];
}

/** The file of a program that is not among those of the system, and the file it leads to. */
function findProgram(command: string, path: string): readonly string[] {
  const places = command.includes(sep)
    ? [command]
    : path.split(delimiter).map((folder) => join(folder, command));
  const found = places.find((place) => isAbsolute(place) && isExecutable(place));
  if (found === undefined) return [];
  const files = [...new Set([found, realpathSync(found)])];
  return files.filter((file) => !system.some((folder) => isWithin(file, folder)));
}

/** A program of the system, wherever PATH leads first: a server may be allowed to write to a folder of PATH. */
function locate(name: string): string {
  return ["/usr/bin", "/bin"].map((folder) => join(folder, name)).find(isExecutable) ?? name;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether an absolute path is a folder or in it. */
function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

interface Probe {
  readonly problem: string | undefined;
  readonly takesSizes: boolean;
}

let probed: Probe | undefined;
let hasPrlimit: boolean | undefined;

/** Why a sandbox cannot be made on this machine; undefined when it can. Programs are tried once for each process. */
export function findSandboxProblem(
  sandbox: Pick<SandboxConfig, "memoryMb" | "processes">,
): string | undefined {
  const { problem } = probe();
  if (problem !== undefined || toLimits(sandbox).length === 0) return problem;
  hasPrlimit ??= spawnSync(locate("prlimit"), ["--version"]).status === 0;
  if (hasPrlimit) return undefined;
  return "its sandbox has limits, which need the program prlimit: install util-linux, or remove memoryMb and processes";
}

/** An empty folder, in memory. */
function sized(path: string): readonly string[] {
  return [...(probe().takesSizes ? ["--size", String(scratchBytes)] : []), "--tmpfs", path];
}

function probe(): Probe {
  probed ??= process.platform === "linux" ? tryBwrap() : { problem: notLinux, takesSizes: false };
  return probed;
}

const advice = "or remove its sandbox from the config, if it may run without one";
const notLinux = `its sandbox needs Linux: run it there, ${advice}`;

/** Makes a sandbox with nothing in it. Versions before 0.7 do not know `--size`. */
function tryBwrap(): Probe {
  const attempt = (sizes: string): ReturnType<typeof spawnSync> => {
    const flags = [...apart, ...`--ro-bind / / --proc /proc ${sizes}--tmpfs /tmp -- true`.split(" ")];
    return spawnSync(locate("bwrap"), flags, {
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
      timeout: 10_000,
    });
  };
  const first = attempt(`--size ${scratchBytes} `);
  if (first.status === 0) return { problem: undefined, takesSizes: true };
  if (first.error !== undefined)
    return {
      problem: `its sandbox needs the program bwrap: install bubblewrap, ${advice}`,
      takesSizes: false,
    };
  const second = attempt("");
  if (second.status === 0) return { problem: undefined, takesSizes: false };
  const reason = String(second.stderr).trim().split("\n", 1)[0] ?? "";
  return {
    problem: `this system lets bwrap make no sandbox (${reason}): allow it, ${advice}`,
    takesSizes: false,
  };
}
