import type { IncomingHttpHeaders } from "node:http";
import type { Cancellation } from "../../../async/cancellation.ts";
import type { Authorizer } from "../../../auth/out/authorizer.ts";
import { parseChallenge } from "../../../auth/out/challenge.ts";
import type { ReplySink } from "./exchange.ts";
import { WholeReply } from "./whole-reply.ts";

/** Most bytes of the text that comes with a refusal. */
const maxRefusalBytes = 64 * 1024;

/** How often a request is sent again with another token: once for a token renewed meanwhile, once for our own renewal. */
const maxRetries = 2;

/** Sends a request once, with these headers besides its own. */
type SendOnce = (headers: readonly string[], sink: ReplySink) => Promise<void>;

/**
 * Sends a request with the token of an authorizer, and again with another token when the server refuses it: nothing was done then. The
 * sink sees the last answer only. Rejects with an `AuthorizationError` when a person must sign in.
 */
export async function sendAuthorized(
  authorizer: Authorizer,
  send: SendOnce,
  sink: ReplySink,
  stop: Cancellation | undefined,
): Promise<void> {
  for (let retries = 0; ; retries++) {
    const token = await authorizer.token();
    const reply = new RefusableReply(sink);
    await send(token === undefined ? [] : ["authorization", `Bearer ${token}`], reply);
    const { refusal } = reply;
    if (refusal === undefined) return;
    const challenge = parseChallenge(refusal.status, refusal.headers["www-authenticate"]);
    const isOver = challenge === undefined || retries === maxRetries;
    const refused = { token, isRetry: retries > 0, signal: stop?.signal };
    if (!isOver && (await authorizer.refused(challenge, refused))) continue;
    sink.head(refusal.status, refusal.headers);
    await sink.chunk(refusal.body);
    return;
  }
}

/** Keeps a refusal from the sink, which may yet get a better answer. */
class RefusableReply implements ReplySink {
  refusal: WholeReply | undefined;
  readonly #sink: ReplySink;

  constructor(sink: ReplySink) {
    this.#sink = sink;
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    if (status !== 401 && status !== 403) return this.#sink.head(status, headers);
    this.refusal = new WholeReply(maxRefusalBytes);
    this.refusal.head(status, headers);
  }

  chunk(bytes: Uint8Array): boolean | Promise<void> {
    return (this.refusal ?? this.#sink).chunk(bytes);
  }
}
