import { fork } from "node:child_process";
import { once } from "node:events";
import { WrongAnswerError } from "./load.mjs";
import { cpuMicros, peakBytes } from "./processes.mjs";

/**
 * A client: it is its own load, so its own CPU is what counts.
 *
 * @param {string} file
 * @param {string} url of the server
 * @param {number} inFlight
 * @returns {Promise<import("./contest.mjs").Subject>}
 */
export async function openClientSubject(file, url, inFlight) {
  // The official clients warn of their own listeners all the time.
  const child = fork(file, [url], {
    execArgv: ["--no-warnings"],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  const tree = { pid: child.pid ?? 0 };
  await messageOf(child);
  return {
    async turn(limit) {
      const before = cpuMicros(tree);
      child.send({ ...limit, inFlight });
      const figure = /** @type {import("../load/turn.mjs").Figure & { error?: string }} */ (
        await messageOf(child)
      );
      if (figure.error !== undefined) throw new WrongAnswerError(figure.error);
      return { ...figure, cpu: (cpuMicros(tree) - before) / figure.calls };
    },
    peakBytes: () => peakBytes(tree),
    async close() {
      child.kill("SIGKILL");
    },
  };
}

/** @param {import("node:child_process").ChildProcess} child @returns {Promise<unknown>} */
async function messageOf(child) {
  const given = new AbortController();
  const { signal } = given;
  try {
    const happened = await Promise.race([
      once(child, "message", { signal }),
      once(child, "exit", { signal }).then(([code]) =>
        Promise.reject(new Error(`the client ended with ${code}`)),
      ),
    ]);
    return happened[0];
  } finally {
    given.abort();
  }
}
