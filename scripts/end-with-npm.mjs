// npm runs a script as `sh -c "node …"`. SIGTERM and SIGHUP to npm end npm, and SIGTERM the shell too, but neither reaches the
// program. (SIGINT to npm alone ends nothing where the shell is dash, which waits for the program; Ctrl-C reaches them all.)

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const pollMs = 250;

/** Stops this process, as SIGTERM does, when the npm that runs it, or the shell between them, is gone. Does nothing without npm. */
export function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined || process.platform === "win32") return;
  const shell = process.ppid;
  const npm = parentOf(shell);
  let hasListened = false;
  const timer = setInterval(() => {
    const isListening = process.listenerCount("SIGTERM") > 0;
    hasListened ||= isListening;
    if (process.ppid === shell && parentOf(shell) === npm) return;
    clearInterval(timer);
    // A second signal ends the gateway at once. If it no longer listens, it had one already, such as a signal to the group.
    if (isListening) process.emit("SIGTERM", "SIGTERM");
    else if (!hasListened) process.kill(process.pid, "SIGTERM");
  }, pollMs);
  timer.unref();
}

/** The parent of a process. A process whose parent ended has another one. */
function parentOf(pid) {
  try {
    if (process.platform !== "linux") return ask(pid);
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // "pid (name) state ppid …", and a name may hold anything.
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined; // It is gone.
  }
}

function ask(pid) {
  return Number(execFileSync("ps", ["-o", "ppid=", "-p", String(pid)], { encoding: "utf8" }));
}
