// npm and npx run a program as `sh -c "program …"`. SIGTERM to npm ends npm and the shell, SIGHUP ends npm alone, and neither reaches
// the program. (SIGINT to npm alone ends nothing where the shell is dash, which waits for the program; Ctrl-C reaches them all.)

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const pollMs = 250;

/** A script that leaves its programs running: `junctor serve &`, but not `… && …` or `… 2>&1`. */
const background = /(?<![&>])&(?![&>])|\b(?:nohup|setsid|disown)\b/;

/** Stops this process, as SIGTERM does, when the npm or npx that runs it is gone, or the shell between them. */
export function endWithNpm(): void {
  if (process.platform === "win32" || background.test(process.env["npm_lifecycle_script"] ?? "")) return;
  const parent = process.ppid;
  const npm = findNpm(parent);
  if (npm === undefined) return;
  let hasListened = false;
  const timer = setInterval(() => {
    const isListening = process.listenerCount("SIGTERM") > 0;
    hasListened ||= isListening;
    if (process.ppid === parent && isRunning(npm)) return;
    clearInterval(timer);
    // A second signal ends a gateway at once. If it no longer listens, it had one already, such as a signal to the group.
    if (isListening) process.emit("SIGTERM", "SIGTERM");
    else if (!hasListened) process.kill(process.pid, "SIGTERM");
  }, pollMs);
  timer.unref();
}

/**
 * The process number of the npm that runs us; undefined without one. Its variables alone prove nothing: whatever npm starts
 * passes them on. Some shells replace themselves by the program, so npm may be the parent itself.
 */
function findNpm(parent: number): number | undefined {
  const first = look(parent);
  if (first === undefined) return undefined;
  if (isNpm(first)) return parent;
  if (first.words[1] !== "-c") return undefined;
  const second = look(first.parent);
  return second !== undefined && isNpm(second) ? first.parent : undefined;
}

interface Process {
  readonly parent: number;
  /** The beginning of its command line. */
  readonly words: readonly string[];
}

/** `npm exec …`, as npm titles itself, or `node …/npm-cli.js …`. */
function isNpm({ words }: Process): boolean {
  return words.some((word) => /(?:^|\/)(?:npm|npx|pnpm|yarn)(?:-cli)?(?:\.c?js)?$/.test(word));
}

function look(pid: number): Process | undefined {
  try {
    if (process.platform === "linux") {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split(/[\0 ]/);
      return { parent: Number(readStat(pid)[1]), words: words.slice(0, 2) };
    }
    const shown = execFileSync("ps", ["-o", "ppid=,args=", "-p", String(pid)], { encoding: "utf8" });
    const [parent, ...words] = shown.trim().split(/\s+/);
    return { parent: Number(parent), words: words.slice(0, 2) };
  } catch {
    return undefined; // It is gone, or not ours to see.
  }
}

/** A process that ended and was not waited for counts as gone, where that can be seen. */
function isRunning(pid: number): boolean {
  try {
    if (process.platform === "linux") return readStat(pid)[0] !== "Z";
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** The state of a process, its parent and more. */
function readStat(pid: number): readonly string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // "pid (name) state ppid …", and a name may hold anything.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
