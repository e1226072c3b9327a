import { Buffer } from "node:buffer";
import { type RequestId, toRequestId } from "./message.ts";

/** The traces of an answer in bytes that are no message. */
export interface BrokenAnswer {
  /** The request it is for, where that is known. */
  readonly id: RequestId | undefined;
}

/** How much of the beginning and of the end of a message is searched. */
export const maxHeadBytes: number = 4096;
export const maxTailBytes: number = 512;

const idValue = /^\s*:\s*(-?\d{1,20}|"(?:[^"\\]|\\.){0,200}")/;
const idAtEnd =
  /[,{]\s*"id"\s*:\s*(-?\d{1,20}|"(?:[^"\\]|\\.){0,200}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/;

/**
 * Looks for an answer in bytes that cannot be read as JSON, so that the call that waits for it can be failed. Undefined for
 * requests, notifications and text that is no JSON-RPC.
 */
export function findBrokenAnswer(bytes: Uint8Array): BrokenAnswer | undefined {
  const first = bytes[0];
  if (first !== 0x7b && first !== 0x20 && first !== 0x09) return undefined;
  const keys = keysOf(toText(bytes.subarray(0, maxHeadBytes)));
  const isAnswer = keys.has("result") || keys.has("error") || (keys.has("jsonrpc") && !keys.has("params"));
  if (!isAnswer || keys.has("method")) return undefined;
  return { id: toId(keys.get("id")) ?? findIdAtEnd(bytes)?.id };
}

/** The same by the end of a message alone. */
export function findIdAtEnd(bytes: Uint8Array): BrokenAnswer | undefined {
  const found = idAtEnd.exec(toText(bytes.subarray(-maxTailBytes)));
  return found === null ? undefined : { id: toId(found[1]) };
}

/** The keys of the outermost object as far as it is given, and the text of its id. */
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

function toId(text: string | undefined): RequestId | undefined {
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
