import { quantile } from "../../lib/statistics.mjs";

/** @typedef {{ durationMs: number, maxCalls: number, inFlight: number }} ClientTurn */

/** The address of the server. */
export const url = new URL(process.argv[2] ?? "");

/**
 * Makes calls when the parent says so, and checks every answer: what was sent must come back, and it is never the same.
 *
 * @param {(message: string) => Promise<string | undefined>} echo
 */
export function serveTurns(echo) {
  let lastNonce = 0;
  /** @param {ClientTurn} turn */
  const take = async ({ durationMs, maxCalls, inFlight }) => {
    /** @type {number[]} */
    const latencies = [];
    const started = performance.now();
    const worker = async () => {
      for (let before = started; before - started < durationMs && latencies.length < maxCalls;) {
        const message = `nonce-${process.pid}-${++lastNonce}`;
        const answer = await echo(message);
        if (answer !== message) throw new Error(`${message} was answered with ${answer}`);
        const after = performance.now();
        latencies.push(after - before);
        before = after;
      }
    };
    await Promise.all(Array.from({ length: inFlight }, worker));
    const elapsedMs = performance.now() - started;
    return {
      calls: latencies.length,
      perSecond: (latencies.length * 1000) / elapsedMs,
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
    };
  };
  process.on("disconnect", () => process.exit());
  process.on("message", (/** @type {ClientTurn} */ turn) => {
    take(turn).then(
      (figure) => process.send?.(figure),
      (/** @type {unknown} */ error) => process.send?.({ error: String(error) }),
    );
  });
  process.send?.("ready");
}
