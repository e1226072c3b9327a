import { spawn } from "node:child_process";
import { type Clock, systemClock, waitFor } from "@junctor/core/async";
import type { Logins, Renewal } from "./server-authorizer.ts";

/** How long a renewal may take: a few requests of 5 seconds each, and the start of a process. */
const limitMs = 30_000;

/**
 * Renews credentials in processes of their own: `command` gets a `Renewal` as JSON on its standard input. They are no part of our process
 * group, so they end their work when this process is killed in the middle.
 */
export function renewByProcess(
  command: readonly [string, ...string[]],
  clock: Clock = systemClock,
): NonNullable<Logins["renewElsewhere"]> {
  const [program, ...args] = command;
  return async (renewal: Renewal) => {
    const child = spawn(program, args, { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    const ended = new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", () => resolve());
    });
    child.stdin?.on("error", () => {}); // It ended before it read all, which its end tells.
    child.stdin?.end(JSON.stringify(renewal));
    child.unref();
    await waitFor(ended, { ms: limitMs, clock });
  };
}
