import { spawn } from "node:child_process";

/** How a child and its descendants are ended on a platform. */
export type KillPlan =
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
    // ESRCH: all of them are gone already. EPERM: what is left has become another user's, or is waiting to be reaped.
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}
