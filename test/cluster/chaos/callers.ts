import { both, initializeOf, legacyCall, mirrored, modernCall, sse } from "../../support/http-wire.ts";
import type { Message } from "../../support/raw-http.ts";
import type { Frame } from "../../support/wire-schema.ts";
import { type Exchange, exchange } from "./exchange.ts";
import {
  answerTo,
  type CallEnd,
  type CallKind,
  type StrayQuestion,
  strayOf,
  toEnd,
  wrong,
} from "./record.ts";

/** One call to make. */
export interface PlannedCall {
  readonly kind: CallKind;
  readonly nonce: string;
  readonly tool: string;
  readonly ms: number;
}

export interface CallerOptions {
  readonly url: string;
  readonly key: string;
  /** Takes a question that a modern caller was asked in the middle of another call than that which asked it. */
  readonly onStray: (stray: StrayQuestion) => void;
}

type Post = (message: object, headers?: { readonly [name: string]: string | undefined }) => Promise<Exchange>;

/**
 * A request that does not end in this time counts as hung. The gateway gives a server 30 s to start, a busy one 60 s to have room, and a
 * call 60 s to be answered; every call here is answered within a second, so one that the last limit ends is a violation by itself.
 */
const hungMs = 180_000;
/** How long a caller comes back: a modern one with answers that were not passed on, a legacy one to its stream. No replica is away for as long. */
const maxAwayMs = 30_000;

function createPost({ url, key }: CallerOptions, whole?: AbortSignal): Post {
  return (message, more = {}) => {
    const signal = whole ?? AbortSignal.timeout(hungMs);
    const headers = {
      "content-type": "application/json",
      accept: both,
      authorization: `Bearer ${key}`,
      ...more,
    };
    const known = Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined);
    return exchange(url, { method: "POST", headers: known, body: JSON.stringify(message), signal });
  };
}

const broken = (why: unknown): CallEnd => ({ kind: "broken", why: String(why).slice(0, 200) });

function toArguments({ nonce, ms }: PlannedCall): object {
  return { nonce, ms };
}

/** The last message of an exchange that answers the request, or how it went wrong. */
async function readEnd(
  { nonce }: PlannedCall,
  { messages, status }: Exchange,
  id: Frame["id"],
): Promise<Message | CallEnd> {
  let end: Message | undefined;
  for await (const message of messages) {
    const stray = strayOf(nonce, message);
    if (stray !== undefined) return wrong(stray);
    if (message.method !== undefined) continue;
    if (end !== undefined) return wrong("two ends of one call");
    if (message.id !== id) return toRefusal(status, message);
    end = message;
  }
  return end ?? broken(`no response, status ${status}`);
}

/** A request that was refused as a whole is answered with a status and an error without an id. Nothing was sent on. */
function toRefusal(status: number, { id, error }: Message): CallEnd {
  const { delivery = "not_sent" } = (error?.data ?? {}) as { readonly delivery?: string };
  if (status === 200 || id != null || error === undefined) return wrong(`a response with the id ${id}`);
  return { kind: "error", delivery, message: `${status} ${error.message}` };
}

const isEnd = (value: Message | CallEnd): value is CallEnd => "kind" in value;

/** Makes a call as a modern client, and answers what it is asked. A state is good at every replica, so it is brought again. */
export async function callModern(call: PlannedCall, options: CallerOptions): Promise<CallEnd> {
  const post = createPost(options);
  const meta = {
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    ...(call.kind === "streaming" ? { progressToken: call.nonce } : {}),
  };
  let round: { readonly [member: string]: unknown } = {};
  let untilMs: number | undefined;
  /** Whether the caller has tried for long enough, and what became of its call is unknown: the call was sent, the answers were not. */
  const isGivenUp = (): boolean => performance.now() > (untilMs ??= performance.now() + maxAwayMs);
  for (;;) {
    const frame = modernCall(call.tool, toArguments(call), { _meta: meta, ...round });
    const isFirst = round["requestState"] === undefined;
    try {
      const end = await readEnd(call, await post(frame, mirrored(frame)), frame.id);
      if (isEnd(end) && (end.kind === "wrong" || isFirst)) return end;
      if (!isEnd(end) && end.result?.["resultType"] === "input_required") {
        const { requestState, inputRequests = {} } = end.result;
        const asked = Object.entries(inputRequests as { [key: string]: Message });
        const answers = asked.map(([key, { params }]): [string, object] => {
          const about = params?.["message"] as string;
          if (about !== call.nonce) options.onStray({ nonce: call.nonce, about });
          return [key, { action: "accept", content: { name: answerTo(about) } }];
        });
        round = { requestState, inputResponses: Object.fromEntries(answers) };
        untilMs = undefined;
        continue;
      }
      if (!isEnd(end) && !isToComeBack(end)) return toEnd(call, end);
      // The call was sent in an earlier round. That this one was not says nothing of it.
      if (isGivenUp())
        return isFirst && !isEnd(end) ? toEnd(call, end) : broken("its answers were not passed on");
    } catch (error) {
      if (isHung(error)) return wrong("a request of it did not end");
      if (isFirst || isGivenUp()) return broken(error);
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

function isHung(error: unknown): boolean {
  return error instanceof DOMException && error.name === "TimeoutError";
}

/** Whether the answers were not passed on, so that the caller should bring them again. */
function isToComeBack({ error }: Message): boolean {
  return (error?.data as { readonly delivery?: string } | undefined)?.delivery === "not_sent";
}

/** A legacy client with a session of its own. */
export class LegacyCaller {
  readonly #options: CallerOptions;
  #session: string | undefined;
  #nextId = 1;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  async call(call: PlannedCall): Promise<CallEnd> {
    const signal = AbortSignal.timeout(hungMs);
    const post = createPost(this.#options, signal);
    try {
      await this.#begin(post);
      const id = this.#nextId++;
      const meta = call.kind === "streaming" ? { progressToken: call.nonce } : undefined;
      const frame = legacyCall(id, call.tool, toArguments(call), meta);
      const first = await post(frame, this.#headers());
      if (first.status === 404) this.#session = undefined;
      return await this.#follow(call, { id, first, post, signal });
    } catch (error) {
      return signal.aborted ? wrong("it did not end") : broken(error);
    }
  }

  #headers(): { readonly [name: string]: string | undefined } {
    return { "mcp-session-id": this.#session, "mcp-protocol-version": "2025-11-25" };
  }

  async #begin(post: Post): Promise<void> {
    if (this.#session !== undefined) return;
    const reply = await post(initializeOf("2025-11-25", { elicitation: {} }));
    for await (const _ of reply.messages);
    const session = reply.headers.get("mcp-session-id");
    if (session === null) throw new Error(`no session, status ${reply.status}`);
    this.#session = session;
    await post({ jsonrpc: "2.0", method: "notifications/initialized" }, this.#headers());
  }

  /** Reads the stream of a call, answers its question, and comes back for the rest when the stream breaks. */
  async #follow(
    call: PlannedCall,
    { id, first, post, signal }: { id: number; first: Exchange; post: Post; signal: AbortSignal },
  ): Promise<CallEnd> {
    let stream = first;
    let end: CallEnd | undefined;
    let last: string | undefined;
    const over = new AbortController();
    try {
      for (;;) {
        try {
          for await (const message of stream.messages) {
            const stray = strayOf(call.nonce, message);
            if (stray !== undefined) return wrong(stray);
            if (message.method === "elicitation/create") void this.#answer(call, message, post, over.signal);
            if (message.method !== undefined) continue;
            if (message.id !== id) return toRefusal(stream.status, message);
            if (end !== undefined) return wrong("two ends of one call");
            end = toEnd(call, message);
          }
          if (end !== undefined) return end;
        } catch (error) {
          if (signal.aborted) throw error;
        }
        last = stream.lastEventId() ?? last;
        if (last === undefined) return broken(`status ${stream.status}`);
        const next = await this.#comeBack(last, signal);
        if (!("messages" in next)) return next;
        stream = next;
      }
    } finally {
      over.abort();
    }
  }

  /** Opens a stream that broke again, at whichever replica, until that is known to be in vain. */
  async #comeBack(last: string, signal: AbortSignal): Promise<Exchange | CallEnd> {
    for (const until = performance.now() + maxAwayMs; performance.now() < until;) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      const next = await this.#resume(last, signal).catch(() => undefined);
      if (signal.aborted) throw signal.reason;
      if (next !== undefined && next.status >= 400 && next.status < 500)
        return broken(`resumed: ${next.status}`);
      if (next?.status === 200) return next;
    }
    return broken(`not resumed in ${maxAwayMs} ms`);
  }

  #resume(last: string, signal: AbortSignal): Promise<Exchange> {
    const own = { accept: sse, authorization: `Bearer ${this.#options.key}`, "last-event-id": last };
    const headers = Object.entries({ ...own, ...this.#headers() }).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    );
    return exchange(this.#options.url, { method: "GET", headers, signal });
  }

  /** Answers until a replica has taken the answer, or the call is over. A call whose question stays open would never end. */
  async #answer({ nonce }: PlannedCall, { id }: Message, post: Post, over: AbortSignal): Promise<void> {
    const result = { action: "accept", content: { name: answerTo(nonce) } };
    while (!over.aborted) {
      const reply = await post({ jsonrpc: "2.0", id, result }, this.#headers()).catch(() => undefined);
      if (reply !== undefined && reply.status < 500) return;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}
