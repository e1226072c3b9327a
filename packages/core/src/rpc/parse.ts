import { Buffer } from "node:buffer";
import { JsonError, RpcError } from "../errors/index.ts";
import {
  inScratch,
  maxScratchBytes,
  type Pieced,
  RawJson,
  type Index,
  scan,
  scanElements,
  type ScanLimits,
  defineShape,
  lenient,
  type Shape,
  type ShapeTree,
  parseText,
} from "../json/index.ts";
import type { Batch, Incoming, Invalid, BrokenAnswer } from "./channel.ts";
import { type ErrorBody, type Message, type RequestId, toRequestId } from "./message.ts";

/** How untrusted bytes are read. */
interface ParseOptions extends ScanLimits {
  /** Which members to find in the one pass; made by {@link defineMessageShape}. */
  readonly shape?: Shape;
  /** The most messages in a batch. */
  readonly maxBatch?: number;
}

/** The shape of a JSON-RPC message whose `params` and `result` members named here are found in the same scan. */
export function defineMessageShape(params: ShapeTree, result: ShapeTree): Shape {
  return defineShape({
    jsonrpc: true,
    id: true,
    method: true,
    params,
    // A result is the other side's own business: unknown members are legal in any spelling.
    result: lenient(result),
    error: lenient({ code: true, message: true, data: true }),
  });
}

const plainShape = defineMessageShape({}, {});

/**
 * Reads one JSON-RPC message (or batch) from untrusted bytes. Never throws: input that is not a message comes back as
 * `invalid` with the error to answer, so that one bad line does not end a stream.
 */
export function parseMessage(bytes: Uint8Array, options: ParseOptions = {}): Incoming {
  const shape = options.shape ?? plainShape;
  try {
    const raw = RawJson.fromScan(bytes, shape, scan(bytes, shape, options));
    switch (raw.kind) {
      case "object":
        return toMessage(raw);
      case "array":
        return parseBatch(bytes, options);
      default:
        return invalid(undefined, `A message is a JSON object, not ${raw.kind}`);
    }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return refuse(error, bytes, shape);
  }
}

/**
 * The same for bytes in pieces. A single valid message stays in pieces; everything else
 * is joined and read again.
 */
export function parsePieced(pieced: Pieced, options: ParseOptions = {}): Incoming {
  const { shape = plainShape } = options;
  if (pieced.length > maxScratchBytes) return parseMessage(pieced.join(), options);
  try {
    const raw = RawJson.fromScan(pieced, shape, scan(inScratch(pieced), shape, options));
    if (raw.kind === "object") return toMessage(raw);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
  }
  return parseMessage(pieced.join(), options);
}

function parseBatch(bytes: Uint8Array, options: ParseOptions): Batch | Invalid {
  const spans = scanElements(bytes, options);
  const maxBatch = options.maxBatch ?? 128;
  if (spans.length === 0) return invalid(undefined, "A batch holds at least one message");
  if (spans.length > maxBatch) return invalid(undefined, `A batch holds at most ${maxBatch} messages`);
  const items = spans.map(({ start, end }): Message | Invalid => {
    // Not parsed: reading every level of a deep nest again would cost its size times its depth.
    if (bytes[start] === 0x5b) return invalid(undefined, "A batch holds messages, not batches");
    return parseMessage(bytes.subarray(start, end), options) as Message | Invalid;
  });
  const ids = items.flatMap((item) => (item.kind === "request" ? [item.id] : []));
  if (new Set(ids).size < ids.length) return invalid(undefined, "A batch uses each id once");
  return { kind: "batch", items };
}

function toMessage(raw: RawJson): Message | Invalid {
  const idText = raw.textOf("id");
  const id = idText === undefined ? undefined : toId(idText);
  const methodText = raw.textOf("method");
  if (methodText !== undefined) return toCall(raw, methodText, idText, id);
  const result = raw.at("result");
  const error = raw.at("error");
  const isMessage = id !== undefined && raw.textOf("jsonrpc") === '"2.0"';
  const isAnswer = isMessage || result !== undefined || error !== undefined;
  const refuseWith = (text: string): Invalid => ({
    ...invalid(id, text, isAnswerable(raw)),
    ...(isAnswer ? { answer: { id } } : {}),
  });
  if (raw.textOf("jsonrpc") !== '"2.0"') return refuseWith(wrongVersion);
  if (result !== undefined && error !== undefined)
    return refuseWith("A response has a result or an error, not both");
  if (result !== undefined) {
    if (id === undefined) return refuseWith("A result names the id of its request");
    return { kind: "result", id, result };
  }
  if (error === undefined) return refuseWith("A message has a method, a result or an error");
  const body = toErrorBody(error);
  return body === undefined
    ? refuseWith("An error has a code and a message")
    : { kind: "error", id, error: body };
}

const wrongVersion = 'A message has the member "jsonrpc": "2.0"';

function toCall(
  raw: RawJson,
  methodText: string,
  idText: string | undefined,
  id: RequestId | undefined,
): Message | Invalid {
  const refuseWith = (text: string): Invalid => invalid(id, text, isAnswerable(raw));
  if (raw.textOf("jsonrpc") !== '"2.0"') return refuseWith(wrongVersion);
  if (raw.textOf("result") !== undefined || raw.textOf("error") !== undefined)
    return refuseWith("A request has no result and no error");
  const method: unknown = parseText(methodText);
  if (typeof method !== "string") return refuseWith("The method is a string");
  const params = raw.at("params");
  if (params !== undefined && params.kind !== "object") return refuseWith("The params are an object");
  if (idText === undefined) return { kind: "notification", method, params };
  if (id === undefined) return refuseWith("A request id is a string or an integer, and not null");
  return { kind: "request", id, method, params };
}

function toErrorBody(error: RawJson): ErrorBody | undefined {
  if (error.kind !== "object") return undefined;
  const code = error.at("code")?.value;
  const message = error.at("message")?.value;
  if (typeof code !== "number" || typeof message !== "string") return undefined;
  const data = error.at("data");
  return data === undefined ? { code, message } : { code, message, data };
}

const integer = /^-?[0-9]+$/;

/** An id by its JSON text. One string has many spellings; the one without needless escapes stands for all of them. */
export function toId(text: string): RequestId | undefined {
  if (text.startsWith('"'))
    return (text.includes("\\") ? JSON.stringify(JSON.parse(text)) : text) as RequestId;
  return integer.test(text) ? (text as RequestId) : undefined;
}

function invalid(id: RequestId | undefined, text: string, isAnswerable = true): Invalid {
  return { kind: "invalid", id, error: new RpcError("rpc.invalid_request", text), isAnswerable };
}

/** Whether an object that is not a message gets an answer: not if it looks like a response, nor like a notification. */
function isAnswerable(raw: RawJson): boolean {
  const method = raw.at("method");
  if (method === undefined) return raw.at("result") === undefined && raw.at("error") === undefined;
  // An id in the wrong case was meant to be one, and its sender waits.
  const hasId = Object.keys(raw.value as object).some((key) => key.toLowerCase() === "id");
  return method.kind !== "string" || hasId;
}

/** Duplicate and case-variant keys leave a finished scan behind, so the answer can still name the request's id. */
function refuse(error: JsonError, bytes: Uint8Array, shape: Shape): Invalid {
  const isTooDeep = error.code === "json.depth";
  const index = isTooDeep ? indexOfDeep(bytes, shape) : error.index;
  const idText = index === undefined ? undefined : RawJson.fromScan(bytes, shape, index).textOf("id");
  const isReadable = index !== undefined || isTooDeep;
  const id = idText === undefined ? undefined : toId(idText);
  const answer = findBrokenAnswer(bytes);
  return {
    kind: "invalid",
    id,
    answer: answer && { id: id ?? answer.id },
    error: new RpcError(isReadable ? "rpc.invalid_request" : "rpc.parse", error.message, { cause: error }),
    // The index leaves out keys that occur twice; whether such a key exists is checked without it.
    isAnswerable:
      isTooDeep ||
      index === undefined ||
      isAnswerable(RawJson.fromChecked(bytes.subarray(index[1], index[2]))),
  };
}

/** The index of a message that is nested too deeply; undefined when it has other faults. */
function indexOfDeep(bytes: Uint8Array, shape: Shape): Index | undefined {
  try {
    return scan(bytes, shape, { maxDepth: bytes.length });
  } catch (error) {
    return error instanceof JsonError ? error.index : undefined;
  }
}

/** How much of the beginning and of the end of a message is searched. */
export const maxHeadBytes: number = 4096;
export const maxTailBytes: number = 512;

const idValue = /^\s*:\s*(-?\d{1,20}|"(?:[^"\\]|\\.){0,200}")/;
const idAtEnd =
  /[,{]\s*"id"\s*:\s*(-?\d{1,20}|"(?:[^"\\]|\\.){0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/**
 * Looks for an answer in bytes that cannot be read as JSON, so that the call that waits for it can be failed. Undefined for
 * requests, notifications and text that is not JSON-RPC.
 */
export function findBrokenAnswer(bytes: Uint8Array): BrokenAnswer | undefined {
  const first = bytes[0];
  if (first !== 0x7b && first !== 0x20 && first !== 0x09) return undefined;
  const keys = keysOf(toText(bytes.subarray(0, maxHeadBytes)));
  const isAnswer = keys.has("result") || keys.has("error") || (keys.has("jsonrpc") && !keys.has("params"));
  if (!isAnswer || keys.has("method")) return undefined;
  return { id: parseId(keys.get("id")) ?? findIdAtEnd(bytes)?.id };
}

/** The same from the end of a message alone. */
export function findIdAtEnd(bytes: Uint8Array): BrokenAnswer | undefined {
  const found = idAtEnd.exec(toText(bytes.subarray(-maxTailBytes)));
  return found === null ? undefined : { id: parseId(found[1]) };
}

/** The keys of the outermost object, as far as the text goes, and the text of its id. */
function keysOf(text: string): ReadonlyMap<string, string | undefined> {
  const keys = new Map<string, string | undefined>();
  const mark = /["{}[\]]/g;
  const string = /"((?:[^"\\]|\\.)*)"/y;
  let depth = 0;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    if (found[0] !== '"') depth += found[0] === "{" || found[0] === "[" ? 1 : -1;
    else {
      string.lastIndex = found.index;
      const name = string.exec(text)?.[1];
      if (name === undefined) break;
      mark.lastIndex = string.lastIndex;
      const rest = text.slice(mark.lastIndex, mark.lastIndex + 250);
      if (depth === 1 && /^\s*:/.test(rest) && !keys.has(name))
        keys.set(name, name === "id" ? idValue.exec(rest)?.[1] : undefined);
    }
  }
  return keys;
}

function parseId(text: string | undefined): RequestId | undefined {
  if (text === undefined) return undefined;
  try {
    const id = JSON.parse(text) as string | number;
    return typeof id === "number" ? (text as RequestId) : toRequestId(id);
  } catch {
    return undefined;
  }
}

/** One character for each byte: what is searched for is ASCII. */
function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
