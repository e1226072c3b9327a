import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { type Clock, sleep, systemClock } from "@junctor/core/async";
import { ClosedError, RpcError } from "@junctor/core/errors";
import { messageShape, sessionHeader } from "@junctor/core/mcp";
import { parseMessage, type RequestId } from "@junctor/core/rpc";
import {
  addressOf,
  type Admission,
  type Elsewhere,
  type FrameSink,
  type HttpHeaders,
  type HttpRequest,
  type LocalService,
  type LocalSessions,
  refuse,
  type Reply,
  type Routed,
  sendError,
  sessionNotFound,
  toData,
  toErrorResponse,
  toFrame,
} from "@junctor/server/internal";
import type { HeldLease, Membership, Replica } from "./membership.ts";
import type { ClusterStore } from "./store.ts";
import { toCallerHeader, type Trunk } from "./trunk.ts";

interface HomesOptions {
  readonly membership: Membership;
  readonly store: ClusterStore;
  readonly trunk: Trunk;
  readonly onWarning: (text: string) => void;
  /** How long ids of sessions are valid. */
  readonly sessionTtlMs?: number;
  readonly clock?: Clock;
}

/** Pause before the leases of busy sessions are claimed again, after the store could not be asked. */
const proveAgainMs = 1000;

/** The most hops of a request: to the home, and from there to the replica that adopted the session. */
const maxHops = 2;

/**
 * Finds where legacy sessions live. An id names the replica where its session began: its home. When that replica is dead, the one
 * that gets the next request adopts the session by taking its lease; the sealed id has all it needs.
 */
export class Homes implements Elsewhere {
  readonly #options: HomesOptions;
  readonly #adoptions: Adoptions;

  /**
   * Whether this replica lost its place among the others at some time. Another one may have adopted its sessions then, so each
   * must be proven by its lease, those that begin later included.
   */
  #wasOut = false;
  /** The sessions in the memory of this replica. */
  #local: LocalSessions = { busy: () => [], handOver: () => {} };
  #stopProving: () => void = () => {};

  constructor(options: HomesOptions) {
    this.#options = options;
    this.#adoptions = new Adoptions(options.membership, options.store);
    options.membership.onIn(() => this.doubt());
  }

  /**
   * This replica was out, so others may have adopted its sessions. From now on each session needs its lease before it is served.
   * Leases of busy sessions are taken now: their clients wait for an answer here, and may send their own answers to the other replica.
   */
  doubt(): void {
    this.#wasOut = true;
    this.#stopProving();
    const { membership, clock = systemClock } = this.#options;
    if (!membership.isIn) return;
    void this.#adoptions.proveBusy(this.#local).then((isWhole) => {
      if (!isWhole) this.#stopProving = clock.timer(proveAgainMs, () => this.doubt());
    });
  }

  watch(sessions: LocalSessions): void {
    this.#local = sessions;
  }

  get address(): string {
    return this.#options.membership.id;
  }

  isAbout(http: HttpRequest): boolean {
    const token = tokenOf(http);
    const home = token === undefined ? undefined : addressOf(token);
    const isProven = home === this.address && !(this.#wasOut && this.#options.membership.isIn);
    if (token === undefined || home === undefined || isProven) return false;
    // A stream of 2024-11-05 ends with its replica, and is where it began or nowhere.
    if (home === this.address && isSse(http)) return false;
    return !this.#adoptions.has(endOf(token));
  }

  pass(admission: Admission, local: LocalService): Routed {
    const { http, reply } = admission;
    const { maxBytes } = local;
    if (http.method !== "POST") return this.#pass(admission, local, undefined);
    return {
      maxBytes,
      take: (body) => {
        if (body === "aborted") return;
        if (body === "too_large") return refuse(reply, 413, `The body is larger than ${maxBytes} bytes`);
        return this.#pass(admission, local, body);
      },
    };
  }

  ended(token: string): void {
    const { store, onWarning, sessionTtlMs = 24 * 3_600_000 } = this.#options;
    const end = endOf(token);
    store
      .write(`gone:${end}`, "1", sessionTtlMs)
      .catch(() =>
        onWarning("A session that ended may be adopted by another replica: the store cannot be reached"),
      );
    this.left(token);
  }

  left(token: string): void {
    this.#adoptions.release(endOf(token));
  }

  async #pass(admission: Admission, local: LocalService, body: Uint8Array | undefined): Promise<void> {
    let way: Exclude<SessionPlace, Replica> | Pipe = "unknown";
    const isLost = (admission.piped?.hops ?? 0) >= maxHops;
    // A home that cannot be reached may have died since the last look at the store.
    for (const look of isLost ? [] : (["find", "findAgain"] as const)) {
      try {
        const place = await this.#find(admission.http, local, look);
        way = typeof place === "string" ? place : await openPipe(place, admission, body, this.#options);
        if (way !== "unknown") break;
      } catch {
        // The home is alive by its lease and cannot be reached now, or the store cannot be: the client may try again.
      }
    }
    if (way === "here") return serveHere(local, body);
    if (way === "ended") return sendError(admission.reply, 404, sessionNotFound());
    if (way !== "unknown") return usePipe(way, admission, body);
    const text = "The replica that has this session cannot be reached; nothing was sent, try again";
    const data = { code: "rpc.overloaded", delivery: "not_sent", retryAfterMs: 1000 };
    sendError(admission.reply, 503, new RpcError("rpc.overloaded", text, { data }), {
      headers: { "retry-after": "1" },
    });
  }

  /** Where a session lives now. Rejects when the store cannot be asked. */
  async #find(http: HttpRequest, local: LocalService, look: "find" | "findAgain"): Promise<SessionPlace> {
    const { membership } = this.#options;
    const token = tokenOf(http) ?? "";
    const home = addressOf(token) ?? "";
    const session = endOf(token);
    // While the store cannot be asked, no other replica can adopt a session that is ours.
    if (home === this.address)
      return this.#adoptions.has(session) ? "here" : this.#adoptions.claim(session).catch(() => "here");
    const alive = await membership[look](home);
    if (alive !== undefined) return alive;
    // A stream of 2024-11-05 ended with its replica. An id that was made up is not a reason to take a lease.
    if (isSse(http)) return "here";
    return local.isGood() ? this.#adoptions.claim(session) : "ended";
  }
}

/** Whether a request belongs to a stream of 2024-11-05. */
function isSse(http: HttpRequest): boolean {
  return http.path === "/messages";
}

function tokenOf(http: HttpRequest): string | undefined {
  return isSse(http) ? (http.query.get("sessionId") ?? undefined) : http.header(sessionHeader);
}

async function serveHere(local: LocalService, body: Uint8Array | undefined): Promise<void> {
  const wanted = await local.serve();
  if (wanted !== undefined && body !== undefined) await wanted.take(body);
}

/** Where a session is served. `unknown`: the store or the replica cannot be asked now. */
type SessionPlace = "here" | "ended" | "unknown" | Replica;

/** The most sessions of dead replicas that this one adopts; the lease of the oldest is given back beyond that. */
const maxAdopted = 16_384;
/** The most leases that are claimed at a time. */
const maxClaims = 500;

/** The last 32 characters identify a session: they hold the tag of the seal, or are random. */
function endOf(token: string): string {
  return token.slice(-32);
}

/** The sessions whose leases this replica has, by the ends of their ids. */
class Adoptions {
  readonly #membership: Membership;
  readonly #store: ClusterStore;
  /** Oldest first. */
  readonly #adopted = new Map<string, HeldLease>();
  /** The sessions that it is about to adopt. */
  readonly #adopting = new Map<string, Promise<SessionPlace>>();

  constructor(membership: Membership, store: ClusterStore) {
    this.#membership = membership;
    this.#store = store;
  }

  has(session: string): boolean {
    return this.#adopted.has(session);
  }

  /** Takes the lease of a session. All requests of a session that come at once wait for one claim. */
  claim(session: string): Promise<SessionPlace> {
    const known = this.#adopting.get(session);
    if (known !== undefined) return known;
    const adopting = this.#adopt(session).finally(() => this.#adopting.delete(session));
    this.#adopting.set(session, adopting);
    return adopting;
  }

  release(session: string): void {
    const lease = this.#adopted.get(session);
    this.#adopted.delete(session);
    void lease?.release();
  }

  /**
   * Takes the leases of all busy sessions here. Where another replica has the lease, the calls of the session end here. False if
   * the store could not be asked for some.
   */
  async proveBusy(local: LocalSessions): Promise<boolean> {
    const tokens = local.busy().filter((token) => !this.has(endOf(token)));
    let isWhole = true;
    for (let from = 0; from < tokens.length; from += maxClaims) {
      const claimed = tokens.slice(from, from + maxClaims).map(async (token) => {
        const place = await this.claim(endOf(token)).catch(() => "unknown" as const);
        if (place === "unknown") isWhole = false;
        else if (place !== "here") local.handOver(token);
        return token;
      });
      await Promise.all(claimed);
    }
    // The lease of a session that left meanwhile is of no use.
    const busy = new Set(local.busy());
    for (const token of tokens) if (!busy.has(token)) this.release(endOf(token));
    return isWhole;
  }

  /** Takes over a session whose home is dead, unless another replica has done so or it was deleted. */
  async #adopt(session: string): Promise<SessionPlace> {
    if ((await this.#store.read(`gone:${session}`)) !== undefined) return "ended";
    const lease = await this.#membership.hold(`home:${session}`, () => this.#adopted.delete(session));
    if (!("release" in lease)) return (await this.#membership.findAgain(lease.holder)) ?? "unknown";
    this.#adopted.set(session, lease);
    const [oldest] = this.#adopted.keys();
    if (this.#adopted.size > maxAdopted && oldest !== undefined) this.release(oldest);
    return "here";
  }
}

/** Headers of a client's request that its session needs. Its key is not among them: credentials stop at the hop. */
const passedHeaders = [
  "accept",
  "content-type",
  "last-event-id",
  "mcp-protocol-version",
  "mcp-session-id",
  "traceparent",
  "tracestate",
];

/** Headers that are about one connection, or that the writer of the answer makes itself. */
const ownHeaders = new Set(["connection", "content-length", "date", "keep-alive", "transfer-encoding"]);

/** The most bytes of an answer that is not a stream. */
const maxAnswerBytes = 64 * 1024 * 1024;

/** The most tries to resume a stream after a break, and most breaks without an event between them. The pause between two tries. */
const maxResumptions = 3;
const resumeMs = 200;

/** A request that is piped to another replica. */
interface Pipe {
  /** The request, whose connection is open. Nothing was sent yet. */
  readonly outgoing: ClientRequest;
  /** Asks for the rest of its stream, on another connection. Rejects when the replica is gone or cannot be reached. */
  resume(lastEventId: string): Promise<ClientRequest>;
}

/** Opens a pipe for a request to another replica. Rejects when that cannot be reached: nothing was sent then. */
async function openPipe(
  replica: Replica,
  admission: Admission,
  body: Uint8Array | undefined,
  { trunk, membership }: Pick<HomesOptions, "trunk" | "membership">,
): Promise<Pipe> {
  const { http } = admission;
  const query = http.query.toString();
  const outgoing = await trunk.request(replica, {
    method: http.method,
    path: query === "" ? http.path : `${http.path}?${query}`,
    headers: toHeaders(admission, body),
  });
  return {
    outgoing,
    resume: async (lastEventId) => {
      if ((await membership.find(replica.id)) === undefined) throw new Error("the replica is gone");
      const headers = {
        ...toHeaders(admission, undefined, true),
        accept: "text/event-stream",
        "last-event-id": lastEventId,
      };
      return trunk.request(replica, { method: "GET", path: http.path, headers });
    },
  };
}

/** Answers a request over an open pipe. The client gets the answer, or an error that says that the outcome is unknown. */
async function usePipe(
  pipe: Pipe,
  { reply }: Pick<Admission, "reply">,
  body: Uint8Array | undefined,
): Promise<void> {
  let { outgoing } = pipe;
  reply.onHangUp(() => outgoing.destroy());
  const answer = await answerOf(outgoing, body);
  if (answer === undefined) return sendLost(reply, idOf(body));
  if (!isStream(answer)) return passWhole(answer, reply, body);
  const resume = async (lastEventId: string): Promise<IncomingMessage | "refused" | undefined> => {
    outgoing = await pipe.resume(lastEventId);
    const rest = await answerOf(outgoing, undefined);
    if (rest?.statusCode === 200 && isStream(rest)) return rest;
    outgoing.destroy();
    return rest?.statusCode === 409 ? "refused" : undefined;
  };
  await passStream(answer, { resume, leave: () => outgoing.destroy() }, reply, body);
}

/** Sends a request and waits for the beginning of its answer; undefined when its connection broke before that. */
function answerOf(
  outgoing: ClientRequest,
  body: Uint8Array | undefined,
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve) => {
    outgoing.on("error", () => resolve(undefined)); // After the response began, its own stream fails too.
    outgoing.once("response", resolve);
    outgoing.end(body);
  });
}

function isStream({ headers }: IncomingMessage): boolean {
  return headers["content-type"]?.startsWith("text/event-stream") === true;
}

function toHeaders(
  { http, identity, piped }: Admission,
  body: Uint8Array | undefined,
  isMending = false,
): HttpHeaders {
  const headers: { [name: string]: string } = {};
  for (const name of passedHeaders) {
    const value = http.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const address = piped === undefined ? http.remoteAddress : piped.from;
  const hops = (piped?.hops ?? 0) + 1;
  if (body !== undefined) headers["content-length"] = String(body.length);
  return { ...headers, ...toCallerHeader({ identity, address, hops, isMending }) };
}

function toReplyHeaders(headers: IncomingHttpHeaders): HttpHeaders {
  const entries = Object.entries(headers).filter(
    ([name, value]) => typeof value === "string" && !ownHeaders.has(name),
  );
  return Object.fromEntries(entries) as HttpHeaders;
}

async function passWhole(answer: IncomingMessage, reply: Reply, body: Uint8Array | undefined): Promise<void> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const piece of answer as AsyncIterable<Uint8Array>) {
      pieces.push(piece);
      length += piece.length;
      if (length > maxAnswerBytes) throw new Error("the answer is too long");
    }
    reply.send(answer.statusCode ?? 502, toReplyHeaders(answer.headers), pieces);
  } catch {
    sendLost(reply, idOf(body));
  }
}

/** Where a piped stream comes from: `resume` asks for the rest of it, which the home may refuse; `leave` ends it. */
interface StreamSource {
  readonly resume: (lastEventId: string) => Promise<IncomingMessage | "refused" | undefined>;
  readonly leave: () => void;
}

/**
 * Passes a stream on at the pace of its reader. When it breaks and its replica is alive, it is resumed after its last event;
 * otherwise it ends with an `outcome_unknown` error. The home refuses to resume a stream that its client reads over another
 * connection, or that the home cut because memory is short. Then the reader is cut here too.
 */
async function passStream(
  first: IncomingMessage,
  { resume, leave }: StreamSource,
  reply: Reply,
  body: Uint8Array | undefined,
): Promise<void> {
  let hasLeft = false;
  const sink = reply.stream(first.statusCode ?? 200, toReplyHeaders(first.headers), () => {
    hasLeft = true;
    leave();
  });
  const last = { eventId: undefined as string | undefined };
  let isRefused = false;
  let brokeAfter: string | undefined;
  let breaks = 0;
  for (let answer: IncomingMessage | undefined = first; answer !== undefined;) {
    if (await passEvents(answer, sink, last)) return sink.end();
    answer = undefined;
    breaks = last.eventId === brokeAfter ? breaks + 1 : 1;
    brokeAfter = last.eventId;
    // An event that is too long would break the stream each time.
    if (breaks > maxResumptions) break;
    for (let count = 0; count < maxResumptions && answer === undefined; count++) {
      if (hasLeft) return;
      if (last.eventId === undefined) break;
      if (count > 0) await sleep(resumeMs, systemClock);
      const rest = await resume(last.eventId).catch(() => undefined);
      isRefused = rest === "refused";
      answer = rest === "refused" ? undefined : rest;
      // Its reader may have left meanwhile.
      if (hasLeft) return leave();
    }
  }
  const id = idOf(body);
  if (isRefused) return sink.cut("it went on over another connection");
  if (id === undefined) return sink.cut("the replica that it came from is gone");
  await sink.write(toFrame(toData(toErrorResponse(lostError(), id))));
  sink.end();
}

/** Passes on whole events only, because a resumed stream repeats an event that was cut off. Resolves with false when the stream broke. */
async function passEvents(
  answer: IncomingMessage,
  sink: FrameSink,
  last: { eventId: string | undefined },
): Promise<boolean> {
  const decoder = new StringDecoder("utf8");
  /** The beginning of an event, in pieces: it may be long, and each piece is searched once. */
  let begun: string[] = [];
  let begunLength = 0;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) {
      const text = decoder.write(piece);
      const end = endOfEvents(begun.at(-1), text);
      if (end === 0) {
        if (text !== "") begun.push(text);
        begunLength += text.length;
        if (begunLength > maxAnswerBytes) return false;
        continue;
      }
      const events = begun.join("") + text.slice(0, end);
      begun = [text.slice(end)];
      begunLength = text.length - end;
      await sink.write(events);
      last.eventId = lastIdIn(events) ?? last.eventId;
    }
    return true;
  } catch {
    return false;
  }
}

/** Where the last event ends in a text; 0 if none does. The empty line at its end may have begun in the text before. */
function endOfEvents(before: string | undefined, text: string): number {
  const at = text.lastIndexOf("\n\n");
  if (at !== -1) return at + 2;
  return text.startsWith("\n") && before?.endsWith("\n") === true ? 1 : 0;
}

/** The last id in some events of ours. Data is JSON on one line, so no line of it looks like an id. */
function lastIdIn(events: string): string | undefined {
  const lines = `\n${events}`;
  const at = lines.lastIndexOf(idStart);
  return at === -1 ? undefined : lines.slice(at + idStart.length, lines.indexOf("\n", at + 1));
}

const idStart = "\nid: ";

function sendLost(reply: Reply, id: RequestId | undefined): void {
  sendError(reply, id === undefined ? 502 : 200, lostError(), { id });
}

function lostError(): RpcError {
  const text =
    "The replica that has this session was lost before it answered; the request may have been carried out";
  const { code, delivery } = new ClosedError("outcome_unknown", text);
  return new RpcError("rpc.internal", text, { data: { code, delivery } });
}

/** The id of the request in a body, to answer it by; undefined where there is none. */
function idOf(body: Uint8Array | undefined): RequestId | undefined {
  const message = body === undefined ? undefined : parseMessage(body, { shape: messageShape });
  return message?.kind === "request" ? message.id : undefined;
}
