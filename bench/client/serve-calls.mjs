/**
 * Makes calls when the parent says so, and tells what they cost this process.
 *
 * @param {(message: string) => Promise<string | undefined>} echo
 */
export function serveCalls(echo) {
  /** @param {{ calls: number, inFlight: number }} turn */
  const measure = async ({ calls, inFlight }) => {
    const before = process.cpuUsage();
    const started = performance.now();
    let made = 0;
    const worker = async () => {
      while (made < calls) {
        const message = `hello ${made++}`;
        const answer = await echo(message);
        if (answer !== message) throw new Error(`${message} was answered with ${answer}`);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, worker));
    const { user, system } = process.cpuUsage(before);
    process.send?.({
      cpu: (user + system) / calls,
      time: ((performance.now() - started) * 1000) / calls,
    });
  };
  process.on("message", (/** @type {{ calls: number, inFlight: number }} */ turn) => void measure(turn));
  process.send?.("ready");
}

/** The address of the server. */
export const url = new URL(process.argv[2] ?? "");
