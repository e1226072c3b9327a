import { type Clock, waitFor } from "../async/clock.ts";
import { LazyAbort } from "../async/lazy-abort.ts";
import { ConnectError } from "../errors/connect-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Link } from "../mcp/link.ts";
import { isLegacyRevision, newestLegacyRevision, type Revision } from "../mcp/revision.ts";
import { isImplementation } from "../mcp/types.ts";
import type { ClientCapabilities, Implementation, ServerCapabilities } from "../mcp/types.ts";
import type { Agreement } from "./conversation.ts";
import { watchStart } from "./start-patience.ts";

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
    // Nobody aborts the request: initialize is not cancelled, its link is closed.
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
