import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";

/** A program that was started, and everything it wrote. */
export interface Program {
  readonly child: ChildProcess;
  /** The end of what it wrote to both of its streams. */
  output(): string;
  /** Whether it has ended. */
  hasEnded(): boolean;
  /** Ends it with this signal, and resolves when it is gone. */
  end(signal?: NodeJS.Signals): Promise<void>;
}

const maxOutput = 256 * 1024;

/** Starts a program whose streams are read by us alone. */
export function startProgram(
  command: string,
  args: readonly string[],
  env: { readonly [name: string]: string | undefined } = process.env,
): Program {
  const child = spawn(command, [...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output = (output + text).slice(-maxOutput)));
  }
  child.on("error", (error) => (output += String(error)));
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    child,
    output: () => output,
    hasEnded,
    end: async (signal = "SIGKILL") => {
      if (hasEnded() || child.pid === undefined) return;
      const exited = once(child, "exit");
      child.kill(signal);
      // A process that is stopped takes no other signal before it goes on.
      if (signal !== "SIGKILL") child.kill("SIGCONT");
      await exited;
    },
  };
}

/** Polls until the condition holds. Rejects when a program it depends on has ended, with the text that it wrote. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  program?: Program,
): Promise<void> {
  const deadline = performance.now() + 90_000;
  for (;;) {
    if (program?.hasEnded() === true) throw new Error(`It ended before ${what}.\n${program.output()}`);
    if (await condition()) return;
    if (performance.now() > deadline)
      throw new Error(`It took too long until ${what}.\n${program?.output() ?? ""}`);
    await pause(10);
  }
}

/** The programs that a test of a cluster needs and that are not here, or undefined. */
export function missingPrograms(): string | undefined {
  const versions = [
    ["redis-server", "--version"],
    ["haproxy", "-v"],
  ] as const;
  const missing = versions.filter(([name, flag]) => spawnSync(name, [flag]).status !== 0);
  if (missing.length === 0) return undefined;
  return missing.map(([name]) => name).join(" and ");
}
