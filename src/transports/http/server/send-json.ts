import { RpcError } from "../../../errors/rpc-error.ts";
import { toOneLine } from "../../../json/one-line.ts";
import type { RawJson } from "../../../json/raw.ts";
import { toErrorBody } from "../../../jsonrpc/error-body.ts";
import { type ErrorResponse, encodeMessage, type Message, type RequestId } from "../../../jsonrpc/message.ts";
import type { HttpHeaders, Reply } from "./reply.ts";

export const jsonHeaders: HttpHeaders = { "content-type": "application/json" };

/** Answers with one JSON message. */
export function sendJson(
  reply: Reply,
  status: number,
  json: RawJson,
  headers: HttpHeaders = jsonHeaders,
): void {
  reply.send(status, headers, json.prefersBytes ? json.pieces : json.text);
}

/** Answers with an error instead of serving. */
export function sendError(
  reply: Reply,
  status: number,
  error: RpcError,
  id?: RequestId,
  headers?: HttpHeaders,
): void {
  sendJson(reply, status, encodeMessage(toErrorResponse(error, id)), { ...jsonHeaders, ...headers });
}

/** Answers somebody who may not come in. */
export function refuseKey(reply: Reply): void {
  const text = "Send a valid key in the header Authorization: Bearer KEY";
  const error = new RpcError("rpc.invalid_request", text);
  sendError(reply, 401, error, undefined, { "www-authenticate": "Bearer" });
}

export function toErrorResponse(error: RpcError, id: RequestId | undefined): ErrorResponse {
  return { kind: "error", id, error: toErrorBody(error) };
}

/** A message as the data of an event. */
export function toData(message: Message): string {
  return toOneLine(encodeMessage(message)).text;
}
