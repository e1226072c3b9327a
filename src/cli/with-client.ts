import type { Client } from "../client/client.ts";
import { connect, type ConnectOptions } from "../client/connect.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { TextTail } from "../transports/text-tail.ts";
import type { Destination } from "./destination.ts";
import type { Interruption } from "./interrupt.ts";
import { note } from "./print.ts";
import { toSafeText } from "./terminal-text.ts";
import { readVersion } from "./version.ts";

/**
 * Connects, does something with the client, and closes it, also when interrupted. What the server's command wrote to its
 * standard error stream is shown only when something went wrong, because most of them chatter.
 */
export async function withClient<T>(
  destination: Destination,
  { signal }: Interruption,
  options: ConnectOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const { target, headers, timeoutMs } = destination;
  const tail = new TextTail(4096);
  const limits = timeoutMs === undefined ? {} : toLimits(timeoutMs);
  try {
    await using client = await connect(target, {
      clientInfo: { name: "junctor", title: "Junctor command line", version: readVersion() },
      headers,
      signal,
      onStderr: (chunk) => tail.push(chunk),
      ...limits,
      ...options,
    });
    return await unlessAborted(work(client), signal);
  } catch (error) {
    signal.throwIfAborted(); // Whatever else failed then, failed because of it.
    const said = toSafeText(tail.text).trim();
    // Why a server went away is something only it can tell.
    if (error instanceof ClosedError && said !== "")
      await note(`The server wrote:\n${said.replaceAll(/^/gm, "  ")}\n`);
    throw error;
  }
}

function toLimits(timeoutMs: number): ConnectOptions {
  // A silent child is first probed and then greeted the old way; both must fit.
  const probeTimeoutMs = Math.min(3000, timeoutMs / 2);
  return {
    connectTimeoutMs: timeoutMs,
    maxStartMs: timeoutMs,
    probeTimeoutMs,
    timeoutMs,
    maxTotalMs: timeoutMs,
  };
}

/** Waits no longer than somebody wants it. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
