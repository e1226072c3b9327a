import { type Clock, waitFor, LazyAbort } from "@junctor/core/async";
import { ConnectError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  type Link,
  type Revision,
  isLegacyRevision,
  newestLegacyRevision,
  type ClientCapabilities,
  type Implementation,
  type ServerCapabilities,
  isImplementation,
} from "@junctor/core/mcp";
import type { Agreement } from "./conversation.ts";

interface InitializeOptions {
  readonly clientInfo: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly revision?: Revision | undefined;
  /** How long the server may go without a sign of progress. */
  readonly timeoutMs: number;
  /** How long the handshake may take in all. */
  readonly maxTotalMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** The handshake of the legacy revisions. A link on which it failed is good for nothing but disposing. */
export async function initialize(link: Link, options: InitializeOptions): Promise<Agreement> {
  const { capabilities, clientInfo } = options;
  const asked = isLegacyRevision(options.revision) ? options.revision : newestLegacyRevision;
  options.signal.throwIfAborted();
  link.use({ kind: "legacy", revision: undefined });
  const tooLate = new AbortController();
  const stop = watchStart(link, options, (reason) => tooLate.abort(reason));
  const signal = AbortSignal.any([options.signal, tooLate.signal]);
  try {
    const params = RawJson.fromValue({ protocolVersion: asked, capabilities, clientInfo });
    // The request is never aborted: `initialize` is not cancelled, its link is closed.
    const request = { method: "initialize", params, stop: new LazyAbort() };
    const agreement = toAgreement(await waitFor(link.request(request), { signal }), link, options);
    link.use(agreement.mode);
    await waitFor(link.notify("notifications/initialized", undefined), { signal });
    return agreement;
  } finally {
    stop();
  }
}

/** The time for an answer is over. */
export function noAnswer(target: string, reason: string): ConnectError {
  return new ConnectError(target, reason, { kind: "no_answer" });
}

function toAgreement(result: RawJson, { target }: Link, { revision }: InitializeOptions): Agreement {
  const value = (result.kind === "object" ? result.value : {}) as { readonly [key: string]: unknown };
  const { protocolVersion, capabilities, serverInfo, instructions } = value;
  if (!isLegacyRevision(protocolVersion))
    throw new ConnectError(
      target,
      `it speaks the protocol revision ${String(protocolVersion)}, which this client does not`,
    );
  if (revision !== undefined && protocolVersion !== revision)
    throw new ConnectError(
      target,
      `it answered with revision ${protocolVersion}, and ${revision} was asked for`,
    );
  return {
    mode: { kind: "legacy", revision: protocolVersion },
    serverInfo: isImplementation(serverInfo) ? serverInfo : undefined,
    capabilities: (typeof capabilities === "object" && capabilities !== null
      ? capabilities
      : {}) as ServerCapabilities,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}

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
      giveUp(noAnswer(link.target, text));
    });
  };
  wait();
  return () => stop();
}
