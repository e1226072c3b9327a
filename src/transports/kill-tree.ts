import { spawn } from "node:child_process";

/**
 * Ends a child and its descendants. On POSIX the child leads a process group, so one signal reaches all of them; on
 * Windows `taskkill` finds them by parentage, and without /F it would leave them running.
 */
export function killTree(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  if (process.platform === "win32") {
    spawn("taskkill", ["/pid", String(pid), "/T", "/F"], { stdio: "ignore", windowsHide: true }).on(
      "error",
      () => {},
    );
    return;
  }
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // ESRCH: all of them are gone already, which is what was wanted.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
