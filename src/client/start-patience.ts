import type { Clock } from "../async/clock.ts";
import { ConnectError } from "../errors/connect-error.ts";
import type { Link } from "../mcp/link.ts";

interface StartPatienceOptions {
  readonly clock: Clock;
  /** How long the server may go without a sign of progress. */
  readonly timeoutMs: number;
  /** How long the step may take in all, however busy the server is. */
  readonly maxTotalMs: number;
}

/** Less than this within the time-out is what an idle program uses, and no progress. */
const minProcessorMs = 100;

/**
 * Calls `giveUp` when a server that is being started has not answered in time. A server that writes to its standard error
 * stream or uses the processor is at work, often installing itself, and gets more time. Call the returned function when the
 * answer came.
 */
export function watchStart(
  link: Pick<Link, "target" | "progress">,
  { clock, timeoutMs, maxTotalMs }: StartPatienceOptions,
  giveUp: (reason: ConnectError) => void,
): () => void {
  let leftMs = maxTotalMs;
  let seen = link.progress?.();
  let stop: () => void;
  const wait = (): void => {
    const ms = Math.min(timeoutMs, leftMs);
    leftMs -= ms;
    stop = clock.timer(ms, () => {
      const now = link.progress?.();
      const isAtWork =
        seen !== undefined &&
        now !== undefined &&
        (now.stderrBytes > seen.stderrBytes ||
          Math.abs(now.processorMs - seen.processorMs) >= minProcessorMs);
      seen = now;
      if (isAtWork && leftMs > 0) return wait();
      const text = isAtWork
        ? `no answer to initialize within ${maxTotalMs} ms, although it was at work`
        : `no answer to initialize within ${timeoutMs} ms`;
      giveUp(new ConnectError(link.target, text, { kind: "no_answer" }));
    });
  };
  wait();
  return () => stop();
}
