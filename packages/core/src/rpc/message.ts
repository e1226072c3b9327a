import { type RpcError, rpcCodes } from "../errors/index.ts";
import { joinJson, RawJson } from "../json/index.ts";

/**
 * A request id as its JSON text: `1` and `"1"` differ, and an id is sent back exactly as it was received, also where a number
 * would lose precision. Made by {@link toRequestId} and by the parser only.
 */
export type RequestId = string & { readonly __brand: "RequestId" };

/** A message that expects exactly one answer. */
export interface Request {
  readonly kind: "request";
  readonly id: RequestId;
  readonly method: string;
  readonly params: RawJson | undefined;
}

/** A message that is never answered. */
export interface Notification {
  readonly kind: "notification";
  readonly method: string;
  readonly params: RawJson | undefined;
}

/** The answer to a request that succeeded. */
interface ResultResponse {
  readonly kind: "result";
  readonly id: RequestId;
  readonly result: RawJson;
}

/** The answer to a request that failed; `id` is missing when the request's own could not be read. */
export interface ErrorResponse {
  readonly kind: "error";
  readonly id: RequestId | undefined;
  readonly error: ErrorBody;
}

/** The `error` member of an error response. */
export interface ErrorBody {
  readonly code: number;
  readonly message: string;
  readonly data?: RawJson;
}

export type Response = ResultResponse | ErrorResponse;
/** One message of JSON-RPC: a request, a notification or a response. */
export type Message = Request | Notification | Response;

/** The id of a request of our own. */
export function toRequestId(id: string | number): RequestId {
  return (typeof id === "number" ? String(id) : JSON.stringify(id)) as RequestId;
}

/** The JSON of one message, or of an array of them (a batch), without a line end. */
export function encodeMessage(message: Message | readonly Message[]): RawJson {
  if (Array.isArray(message)) {
    const parts: (string | RawJson)[] = [];
    for (const item of message as readonly Message[]) {
      parts.push(parts.length === 0 ? "[" : ",", ...encodeParts(item));
    }
    parts.push("]");
    return joinJson(parts);
  }
  return joinJson(encodeParts(message as Message));
}

function encodeParts(message: Message): (string | RawJson)[] {
  switch (message.kind) {
    case "request":
    case "notification": {
      const id = message.kind === "request" ? `"id":${message.id},` : "";
      const head = `{"jsonrpc":"2.0",${id}"method":${JSON.stringify(message.method)}`;
      return message.params === undefined ? [`${head}}`] : [`${head},"params":`, message.params, "}"];
    }
    case "result":
      return [`{"jsonrpc":"2.0","id":${message.id},"result":`, message.result, "}"];
    case "error": {
      const id = message.id === undefined ? "" : `"id":${message.id},`;
      const { code, message: text, data } = message.error;
      const head = `{"jsonrpc":"2.0",${id}"error":{"code":${code},"message":${JSON.stringify(text)}`;
      return data === undefined ? [`${head}}}`] : [`${head},"data":`, data, "}}"];
    }
  }
}

/**
 * The `error` member for an {@link RpcError}. JSON has no NaN and no Infinity, and the protocol wants an
 * integer: any other code, such as one of an upstream that sent `1e400`, leaves as that of an internal error.
 */
export function toErrorBody(error: RpcError): ErrorBody {
  const { rpcCode, message } = error;
  const code = Number.isSafeInteger(rpcCode) ? rpcCode : rpcCodes["rpc.internal"];
  const data = dataOf(error);
  return data === undefined ? { code, message } : { code, message, data };
}

/** Undefined for what JSON cannot hold: that there is an answer matters more than its details. */
function dataOf(error: RpcError): RawJson | undefined {
  try {
    const { data } = error;
    return data === undefined ? undefined : RawJson.fromText(RawJson.fromValue(data).text);
  } catch {
    return undefined;
  }
}
