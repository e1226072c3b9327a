import { RpcError } from "../errors/index.ts";
import { parseText, RawJson, forEachMember, decodeKey, toOneLine } from "../json/index.ts";

/** A string among the params. Throws `-32602` naming it when it is missing or something else. */
export function stringParam(params: RawJson | undefined, key: string): string {
  const text = params?.textOf(key);
  if (text?.charCodeAt(0) !== 0x22)
    throw new RpcError("rpc.invalid_params", `Invalid params: ${key} must be a string`);
  return parseText(text) as string;
}

/** An object among the params, or undefined. Throws `-32602` when it is something else. */
export function objectParam(params: RawJson | undefined, key: string): RawJson | undefined {
  const member = params?.at(key);
  if (member === undefined || member.kind === "object") return member;
  throw new RpcError("rpc.invalid_params", `Invalid params: ${key} must be an object`);
}

/** Strings by name among the params, or none. Throws `-32602` when there is anything else. */
export function stringsParam(params: RawJson | undefined, key: string): { readonly [name: string]: string } {
  const value = (objectParam(params, key)?.value ?? {}) as { readonly [name: string]: unknown };
  const wrong = Object.entries(value).find(([, item]) => typeof item !== "string");
  if (wrong !== undefined)
    throw new RpcError("rpc.invalid_params", `Invalid params: ${key}.${wrong[0]} must be a string`);
  return value as { readonly [name: string]: string };
}

/** The `_meta` keys of the protocol itself. */
export const metaKeys = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
  idempotencyKey: "io.modelcontextprotocol/idempotencyKey",
} as const;

/** The member by which one replica of a gateway tells another who the caller of a request is. */
export const callerKey = "junctor/caller";

/** What `_meta` says about this hop only: the protocol's own members. */
const ownPrefix = "io.modelcontextprotocol/";

/**
 * The members of a request's `_meta` that are passed on to the next server, such as trace context: JSON text
 * without braces, as it was spelled. The protocol's own members hold for one hop only; the next hop gets its
 * own. The argument `traceparent` replaces the one that came.
 */
export function carriedMeta(meta: RawJson | undefined, traceparent?: string): string | undefined {
  const trace = traceparent === undefined ? undefined : `"traceparent":${JSON.stringify(traceparent)}`;
  if (meta === undefined || meta.kind !== "object") return trace;
  const { bytes } = meta;
  let carried: Map<string, RawJson> | undefined;
  forEachMember(bytes, 0, (keyStart, keyEnd, start, end) => {
    if (isOwn(bytes, keyStart + 1, keyEnd - 1)) return;
    const key = decodeKey(bytes, keyStart, keyEnd);
    if (key === "progressToken" || key === callerKey || key.startsWith(ownPrefix)) return;
    if (key === "traceparent" && trace !== undefined) return;
    carried ??= new Map();
    carried.set(key, RawJson.fromChecked(bytes.subarray(start, end)));
  });
  if (carried === undefined) return trace;
  const members = Array.from(carried, ([key, value]) => `${JSON.stringify(key)}:${toOneLine(value).text}`);
  return (trace === undefined ? members : [trace, ...members]).join(",");
}

/** Whether the key at [start, end) begins with the prefix, unescaped, as nearly all such keys do. */
function isOwn(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < ownPrefix.length) return false;
  for (let i = 0; i < ownPrefix.length; i++) if (bytes[start + i] !== ownPrefix.charCodeAt(i)) return false;
  return true;
}
