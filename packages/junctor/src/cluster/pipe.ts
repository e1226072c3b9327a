import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { sleep, systemClock } from "@junctor/core/async";
import { ClosedError, RpcError } from "@junctor/core/errors";
import { messageShape } from "@junctor/core/mcp";
import { parseMessage, type RequestId } from "@junctor/core/rpc";
import {
  type Admission,
  type FrameSink,
  type HttpHeaders,
  type Reply,
  sendError,
  toData,
  toErrorResponse,
  toFrame,
} from "@junctor/server/internal";
import type { Membership, Replica } from "./membership.ts";
import { toCallerHeader, type Trunk } from "./trunk.ts";

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

/** Most bytes of an answer that is no stream. */
const maxAnswerBytes = 64 * 1024 * 1024;

/** Most tries to resume a stream after a break, and most breaks without an event between them. The pause between two tries. */
const maxResumptions = 3;
const resumeMs = 200;

/** A request that is piped to another replica. */
export interface Pipe {
  /** The request, whose connection is open. Nothing was sent yet. */
  readonly asked: ClientRequest;
  /** Asks for the rest of its stream, on another connection. Rejects when the replica is gone or cannot be reached. */
  resume(lastEventId: string): Promise<ClientRequest>;
}

interface PipeOptions {
  readonly trunk: Trunk;
  readonly membership: Membership;
}

/** Opens a pipe for a request to another replica. Rejects when that cannot be reached: nothing was sent then. */
export async function openPipe(
  replica: Replica,
  admission: Admission,
  body: Uint8Array | undefined,
  { trunk, membership }: PipeOptions,
): Promise<Pipe> {
  const { http } = admission;
  const query = http.query.toString();
  const asked = await trunk.request(replica, {
    method: http.method,
    path: query === "" ? http.path : `${http.path}?${query}`,
    headers: toHeaders(admission, body),
  });
  return {
    asked,
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

/** Has a request answered over an open pipe. The client gets the answer, or is told that the outcome is unknown. */
export async function usePipe(
  pipe: Pipe,
  { reply }: Pick<Admission, "reply">,
  body: Uint8Array | undefined,
): Promise<void> {
  let { asked } = pipe;
  reply.onHangUp(() => asked.destroy());
  const answer = await answerOf(asked, body);
  if (answer === undefined) return tellLost(reply, idOf(body));
  if (!isStream(answer)) return passWhole(answer, reply, body);
  const resume = async (lastEventId: string): Promise<IncomingMessage | "refused" | undefined> => {
    asked = await pipe.resume(lastEventId);
    const rest = await answerOf(asked, undefined);
    if (rest?.statusCode === 200 && isStream(rest)) return rest;
    asked.destroy();
    return rest?.statusCode === 409 ? "refused" : undefined;
  };
  await passStream(answer, { resume, leave: () => asked.destroy() }, reply, body);
}

/** Sends a request and waits for the beginning of its answer; undefined when its connection broke before that. */
function answerOf(asked: ClientRequest, body: Uint8Array | undefined): Promise<IncomingMessage | undefined> {
  return new Promise((resolve) => {
    asked.on("error", () => resolve(undefined)); // After the response began, its own stream fails too.
    asked.once("response", resolve);
    asked.end(body);
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
    tellLost(reply, idOf(body));
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

function tellLost(reply: Reply, id: RequestId | undefined): void {
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
