import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/** Linux counts processor time in these units, whatever the kernel's own timer does. */
const msPerTick = 10;

/** Most processes of one tree that are looked at. */
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
