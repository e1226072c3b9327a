import type { Awaitable } from "../async/awaitable.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { prependMembers } from "../json/join.ts";
import { RawJson } from "../json/raw.ts";
import { editMembers } from "../json/splice.ts";
import { parseText } from "../json/value.ts";
import type { Request } from "../jsonrpc/message.ts";
import type { Era } from "../mcp/era.ts";
import { metaKeys } from "../mcp/meta.ts";
import { withoutModernMembers } from "../mcp/projection.ts";
import type { WireContext } from "../mcp/server.ts";
import type { CacheHints, Implementation } from "../mcp/types.ts";
import type { CallContext } from "../tools/context.ts";
import type { Provider } from "../tools/provider.ts";

/** One request on its way through the method table. */
export interface Served {
  readonly request: Request;
  readonly params: RawJson | undefined;
  readonly wire: WireContext;
  readonly context: CallContext;
}

/** Serves one method. What it gives back goes on the wire as it is. */
export type Method = (served: Served) => Awaitable<RawJson>;

/** Methods by name. */
export type Methods = { readonly [method: string]: Method };

/** A method in neither table is unknown; one in a single table exists in that era only. */
export interface MethodTable {
  readonly modern: Methods;
  readonly legacy: Methods;
}

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

/** Makes a result ready for its era: modern ones say what they are and who made them, legacy ones do not. */
export type Finish = (result: RawJson, era: Era, hints?: CacheHints) => RawJson;

/** What a result may say of itself. */
const ownMembers = ["resultType", "_meta", "ttlMs", "cacheScope"];

/**
 * The members every modern result begins with are written once per server. `passesOn`: what other servers have said of
 * themselves is left as it is.
 */
export function createFinish(info: Implementation, passesOn = false): Finish {
  const serverInfo = `"${metaKeys.serverInfo}":${JSON.stringify(info)}`;
  const head = `"resultType":"complete","_meta":{${serverInfo}}`;
  return (result, era, hints) => {
    assertObject(result);
    if (era.kind === "legacy") return withoutModernMembers(result);
    if (passesOn && hints === undefined && result.isForeign && result.has("resultType")) return result;
    const cache = hints === undefined ? "" : `,"ttlMs":${hints.ttlMs},"cacheScope":"${hints.cacheScope}"`;
    const hasOwn = ownMembers.some((key) => result.has(key));
    return hasOwn ? merge(result, serverInfo, hints) : prependMembers(head + cache, result);
  };
}

/** How long what a provider lists may be kept. */
export function hintsOf({ cacheHints }: Provider): CacheHints {
  return cacheHints ?? { ttlMs: 0, cacheScope: "private" };
}

/** Whatever is put in front of the members of something else would be no JSON. */
export function assertObject(result: RawJson): void {
  if (result.kind !== "object")
    throw new TypeError(`A result is an object, and the provider gave ${result.kind}`);
}

/** What the result says of itself is kept, but for a `_meta` that is no object. */
function merge(result: RawJson, serverInfo: string, hints: CacheHints | undefined): RawJson {
  const meta = result.at("_meta");
  const known = meta?.kind === "object" ? meta : RawJson.fromText("{}");
  const added: { [key: string]: RawJson } = {
    _meta: known.at(metaKeys.serverInfo) === undefined ? prependMembers(serverInfo, known) : known,
  };
  const defaults = { resultType: "complete", ...hints };
  for (const [key, value] of Object.entries(defaults)) {
    if (result.at(key) === undefined) added[key] = RawJson.fromValue(value);
  }
  return editMembers(result, added);
}
