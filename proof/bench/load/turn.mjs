import { cpuMicros } from "../lib/processes.mjs";
import { quantile } from "../lib/statistics.mjs";

/** @typedef {{ close(): void }} Socket */
/**
 * @template {Socket} S
 * @typedef {{ socket(): S, call(socket: S): Promise<void> }} Front
 */
/** @typedef {{ connections: number, durationMs: number, maxCalls: number, tree: import("../lib/processes.mjs").Tree }} Turn */
/** @typedef {{ cpu: number, perSecond: number, p50: number, p99: number, calls: number }} Figure cpu in µs a call, p50 and p99 in ms */

const patienceMs = 20_000;

/**
 * Makes calls for so long, or so many, one on every socket at a time. The sockets are opened, and used once, before the clock
 * starts, and the CPU time of the server is read here, so that no message between processes falls into the turn.
 *
 * @template {Socket} S
 * @param {Front<S>} front
 * @param {Turn} turn
 * @returns {Promise<Figure>}
 */
export async function takeTurn(front, { connections, durationMs, maxCalls, tree }) {
  const sockets = Array.from({ length: connections }, () => front.socket());
  const limit = new AbortController();
  const overdue = new Promise((_resolve, reject) => {
    const timer = setTimeout(reject, durationMs + patienceMs, new Error(`no answer in ${patienceMs} ms`));
    limit.signal.addEventListener("abort", () => clearTimeout(timer));
  });
  try {
    return await Promise.race([/** @type {Promise<never>} */ (overdue), measure()]);
  } finally {
    limit.abort();
    for (const socket of sockets) socket.close();
  }

  async function measure() {
    await Promise.all(sockets.map((socket) => front.call(socket)));
    /** @type {number[]} */
    const latencies = [];
    const cpuBefore = cpuMicros(tree);
    const started = performance.now();
    const end = started + durationMs;
    await Promise.all(
      sockets.map(async (socket) => {
        for (let before = started; before < end && latencies.length < maxCalls;) {
          await front.call(socket);
          const after = performance.now();
          latencies.push(after - before);
          before = after;
        }
      }),
    );
    const elapsedMs = performance.now() - started;
    const calls = latencies.length;
    return {
      cpu: (cpuMicros(tree) - cpuBefore) / calls,
      perSecond: (calls * 1000) / elapsedMs,
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
      calls,
    };
  }
}
