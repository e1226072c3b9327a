import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { ClosedError } from "../errors/closed-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { RequestId } from "../jsonrpc/message.ts";
import { parseMessage } from "../jsonrpc/parse.ts";
import { messageShape } from "../mcp/shape.ts";
import type { Admission } from "../transports/http/server/guard.ts";
import {
  type HttpHeaders,
  type Reply,
  sendError,
  toData,
  toErrorResponse,
  toFrame,
} from "../transports/http/server/reply.ts";
import { toCallerHeader } from "./caller-header.ts";
import type { Replica } from "./membership.ts";
import type { Trunk } from "./trunk.ts";

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

/** Opens the way of a request to another replica. Rejects when that cannot be reached: nothing was sent then. */
export function openPipe(
  replica: Replica,
  trunk: Trunk,
  admission: Admission,
  body: Uint8Array | undefined,
): Promise<ClientRequest> {
  const { http } = admission;
  const query = http.query.toString();
  return trunk.request(replica, {
    method: http.method,
    path: query === "" ? http.path : `${http.path}?${query}`,
    headers: toHeaders(admission, body),
  });
}

/** Has a request answered over an open pipe. The client gets the answer, or is told that the outcome is unknown. */
export async function usePipe(
  asked: ClientRequest,
  { reply }: Admission,
  body: Uint8Array | undefined,
): Promise<void> {
  reply.onHangUp(() => asked.destroy());
  await new Promise<void>((resolve) => {
    const lost = (): void => {
      tellLost(reply, idOf(body));
      resolve();
    };
    asked.once("error", lost);
    asked.once("response", (answer) => {
      asked.off("error", lost);
      asked.on("error", () => {}); // The answer ends too, and tells.
      const isStream = answer.headers["content-type"]?.startsWith("text/event-stream") === true;
      const passed = isStream ? passStream(answer, asked, reply, body) : passWhole(answer, reply, body);
      void passed.then(resolve);
    });
    asked.end(body);
  });
}

function toHeaders({ http, identity, piped }: Admission, body: Uint8Array | undefined): HttpHeaders {
  const headers: { [name: string]: string } = {};
  for (const name of passedHeaders) {
    const value = http.header(name);
    if (value !== undefined) headers[name] = value;
  }
  const address = piped === undefined ? http.remoteAddress : piped.from;
  const hops = (piped?.hops ?? 0) + 1;
  if (body !== undefined) headers["content-length"] = String(body.length);
  return { ...headers, ...toCallerHeader({ identity, address, hops }) };
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

/** Passes a stream on at the pace of its reader. One that breaks off ends with the outcome that is not known. */
async function passStream(
  answer: IncomingMessage,
  asked: ClientRequest,
  reply: Reply,
  body: Uint8Array | undefined,
): Promise<void> {
  const sink = reply.stream(answer.statusCode ?? 200, toReplyHeaders(answer.headers), () => asked.destroy());
  const decoder = new StringDecoder("utf8");
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) await sink.write(decoder.write(piece));
    sink.end();
  } catch {
    const id = idOf(body);
    if (id === undefined) return sink.cut("the replica that it came from is gone");
    await sink.write(toFrame(toData(toErrorResponse(lostError(), id))));
    sink.end();
  }
}

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
