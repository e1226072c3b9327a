import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { Socket } from "node:net";
import { type Clock, systemClock } from "@junctor/core/async";

export interface GuardianOptions {
  /** The POSIX shell that the helper process runs in; `/bin/sh`. */
  readonly shell?: string;
  /** Called once when the helper process cannot be started; children are then started without it. */
  readonly onWarning?: (text: string) => void;
  readonly clock?: Clock;
  /** A file descriptor that the helper process keeps open: the reader of its other end sees when no child is left. */
  readonly heldFd?: number | undefined;
}

/**
 * Ensures that children do not outlive us, even when we are ended by KILL. One guardian serves any number of children and
 * needs no closing: its helper process runs only while there is a child, and does not keep this process alive.
 *
 * @example
 * const guardian = createGuardian();
 * await using client = await connect({ command: "npx", args: ["some-server"] }, { guardian });
 */
export interface Guardian {
  /**
   * Calls `start`, which starts a child that leads a process group of its own, with variables for its environment: a mark
   * by which descendants that left the group are found. The child is known at every moment, so a kill of this process
   * cannot leave it behind. Throws what `start` throws.
   */
  watch<Started extends Startable>(start: (env: ChildMarks) => Started): GuardedChild<Started>;
}

/** A child as `node:child_process` makes it; without an id when it did not start. */
interface Startable {
  readonly pid?: number | undefined;
}

export interface GuardedChild<Started extends Startable> {
  readonly child: Started;
  /** Call it when the child has ended and its group was killed: its id may then be given to another process. */
  release(): void;
}

/** Variables by which a child can be found. */
type ChildMarks = { readonly [name: string]: string };

/** Creates a guardian. On Windows it is `noGuardian`: Windows needs a job object for this, which Node does not offer. */
export function createGuardian(options: GuardianOptions = {}): Guardian {
  return process.platform === "win32" ? noGuardian : createPosixGuardian(options);
}

/** Guards no child. Most children then exit by themselves, because their input ends; others live on. */
export const noGuardian: Guardian = { watch: (start) => ({ child: start({}), release: () => {} }) };

/** A helper that ends this soon, this many times in a row, is not started again before the next child. */
const minLifeMs = 1000;
const maxQuickEnds = 5;

function createPosixGuardian({
  shell = "/bin/sh",
  onWarning,
  clock = systemClock,
  heldFd,
}: GuardianOptions): Guardian {
  /** The lines that name each child to the helper, by its mark. The next helper gets them again. */
  const wards = new Map<string, string>();
  let helper: ChildProcess | undefined;
  let hasWarned = false;
  /** How many helpers in a row ended soon after their start. */
  let quickEnds = 0;

  const warnOnce = (error: unknown): void => {
    if (!hasWarned) onWarning?.(`If this process is killed, its children may live on: ${String(error)}`);
    hasWarned = true;
  };
  const runHelper = (): void => {
    const startedAt = clock.now();
    const started = startHelper(shell, heldFd, warnOnce);
    helper = started;
    // A helper that was killed is started again, at once if there is a child: it must not be unguarded.
    started?.once("exit", () => {
      if (helper !== started) return;
      helper = undefined;
      quickEnds = clock.now() - startedAt < minLifeMs ? quickEnds + 1 : 0;
      if (wards.size > 0 && quickEnds < maxQuickEnds) runHelper();
    });
    if (wards.size > 0) send([...wards.values()].join(""));
  };
  // Node hands a short text to the kernel before `write` returns, so that being killed right after cannot lose it.
  const send = (lines: string): void => void helper?.stdin?.write(lines);

  const add = (mark: string, name: string): void => {
    const line = `+${name}\n`;
    wards.set(mark, (wards.get(mark) ?? "") + line);
    send(line);
  };
  const remove = (mark: string): void => {
    const lines = wards.get(mark);
    if (lines === undefined) return; // Removed before: its id may belong to another process by now.
    wards.delete(mark);
    send(lines.replaceAll("+", "-"));
    if (wards.size > 0) return;
    helper?.stdin?.end(); // It exits when its list is empty.
    helper = undefined;
  };

  return {
    watch: (start) => {
      if (helper === undefined) runHelper();
      const mark = randomUUID();
      // The mark is written before the child exists: if we are killed before its id is written, it is found by the mark.
      add(mark, mark);
      let pid: number | undefined;
      try {
        const child = start({ [guardVariable]: mark });
        pid = child.pid;
        return { child, release: () => remove(mark) };
      } finally {
        if (pid === undefined) remove(mark);
        else add(mark, String(pid));
      }
    },
  };
}

/** Starts the helper, which does not keep us alive. It learns that we are gone only by the end of its input. */
function startHelper(
  shell: string,
  heldFd: number | undefined,
  onFailed: (error: unknown) => void,
): ChildProcess | undefined {
  try {
    // The last argument is what the shell calls itself, for readers of a list of processes.
    const helper = spawn(shell, ["-c", script, "junctor-guardian"], {
      stdio: ["pipe", "ignore", "ignore", ...(heldFd === undefined ? [] : [heldFd])],
      cwd: "/",
      // Bash takes a socket as its input for a remote login and runs ~/.bashrc, but not at the second level (SHLVL).
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", SHLVL: "1" },
      detached: true, // A session of its own, so that what ends our group or terminal does not end it.
    });
    helper.on("error", onFailed);
    if (helper.pid === undefined) return undefined;
    helper.stdin?.on("error", () => {}); // It is gone; its exit says so too.
    helper.unref();
    if (helper.stdin instanceof Socket) helper.stdin.unref();
    return helper;
  } catch (error) {
    onFailed(error); // Node throws for some reasons and emits for others.
    return undefined;
  }
}

/** The variable that holds the mark of a process that a gateway started. */
export const guardVariable = "JUNCTOR_GUARD";

/**
 * What the helper runs, for every POSIX shell. It starts no process before we are gone. It keeps a
 * list of marks and group ids. When its input ends while the list is not empty, it ends the groups, and the processes
 * outside of them whose environment has one of the marks (where there is `/proc`, and for processes of our user). TERM goes
 * to each process once, since a second one keeps some from shutting down cleanly; KILL follows after a second.
 */
const script = `
trap "" INT TERM HUP
wards=" "
while read -r line; do
  ward=\${line#?}
  case $line in
    +*) wards="$wards$ward " ;;
    -*) case $wards in *" $ward "*) wards="\${wards%% $ward *} \${wards#* $ward }" ;; esac ;;
  esac
done

is_in_group() {
  stat=
  read -r stat < "/proc/$1/stat"
  set -- \${stat##*) }
  case $wards in *" $3 "*) return 0 ;; esac
  return 1
}

find_left() {
  left= marks=
  for ward in $wards; do
    case $ward in
      *-*) marks="$marks -e ${guardVariable}=$ward" ;;
      *) kill -0 "-$ward" && left="$left -$ward" ;;
    esac
  done
  for file in $(grep -lsF $marks /proc/[0-9]*/environ); do
    file=\${file%/environ}
    pid=\${file#/proc/}
    is_in_group "$pid" || left="$left $pid"
  done
}

[ "$wards" = " " ] && exit
for signal in TERM 0 0 0 0 0 0 0 0 0 KILL KILL KILL; do
  find_left
  [ -z "$left" ] && exit
  kill "-$signal" $left
  sleep 0.1 || sleep 1
done
`;
