import type { IncomingHttpHeaders } from "node:http";
import { isPromise, type Cancellation } from "@junctor/core/async";
import { type Authorizer, parseChallenge } from "../sign-in/index.ts";
import type { ReplySink } from "./exchange.ts";
import { WholeReply } from "./whole-reply.ts";

/** Most bytes of the text that comes with a refusal. */
const maxRefusalBytes = 64 * 1024;

/** How often a request is sent again with another token: once for a token renewed meanwhile, once for our own renewal. */
const maxRetries = 2;

/** Sends a request once, with these headers besides its own. */
type SendOnce = (headers: readonly string[], sink: ReplySink) => Promise<void>;

/** One request that is sent with a token. */
interface AuthorizedRequest {
  readonly authorizer: Authorizer;
  readonly send: SendOnce;
  readonly sink: ReplySink;
  readonly stop: Cancellation | undefined;
}

/**
 * Sends a request with the token of an authorizer, and again with another token when the server refuses it: nothing was done then. The
 * sink sees the last answer only. Rejects with an `AuthorizationError` when a person must sign in. Most requests are answered at the
 * first try, with a token that is known or with none, so that way has no `async` function on it.
 */
export function sendAuthorized(request: AuthorizedRequest, retries = 0): Promise<void> {
  const token = request.authorizer.token();
  return isPromise(token)
    ? token.then((given) => sendWith(given, request, retries))
    : sendWith(token, request, retries);
}

function sendWith(token: string | undefined, request: AuthorizedRequest, retries: number): Promise<void> {
  const reply = new RefusableReply(request.sink);
  const headers = token === undefined ? noHeaders : ["authorization", `Bearer ${token}`];
  return request
    .send(headers, reply)
    .then(() =>
      reply.refusal === undefined ? undefined : sendAgain(token, reply.refusal, request, retries),
    );
}

const noHeaders: readonly string[] = [];

async function sendAgain(
  token: string | undefined,
  refusal: WholeReply,
  request: AuthorizedRequest,
  retries: number,
): Promise<void> {
  const { authorizer, sink, stop } = request;
  const challenge = parseChallenge(refusal.status, refusal.headers["www-authenticate"]);
  const isOver = challenge === undefined || retries === maxRetries;
  const refused = { token, isRetry: retries > 0, signal: stop?.signal };
  if (!isOver && (await authorizer.refused(challenge, refused))) return sendAuthorized(request, retries + 1);
  sink.head(refusal.status, refusal.headers);
  await sink.chunk(refusal.body);
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
