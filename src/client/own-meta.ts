import { RawJson } from "../json/raw.ts";
import { toJsonValue } from "../json/value.ts";
import { metaKeys } from "../mcp/meta-keys.ts";
import type { LogLevel } from "../mcp/types.ts";

/** Members of `_meta` that this client writes itself: what it is, what it can do, and the tokens it knows progress by. */
const ours: ReadonlySet<string> = new Set([
  metaKeys.protocolVersion,
  metaKeys.clientInfo,
  metaKeys.clientCapabilities,
  "progressToken",
]);

/**
 * What the user of a client wants in `_meta`, as members without braces; undefined for nothing. Members that the client
 * writes itself are left out, among them the log level where `logLevel` says one.
 *
 * @throws TypeError for what is no object
 */
export function toMetaMembers(meta: unknown, logLevel?: LogLevel): string | undefined {
  if (meta === undefined) return undefined;
  if (typeof meta !== "object" || meta === null || Array.isArray(meta))
    throw new TypeError(`_meta must be an object, not ${JSON.stringify(meta)}: write { "traceparent": "…" }`);
  const isTheirs = ([key]: readonly [string, unknown]): boolean =>
    !ours.has(key) && (logLevel === undefined || key !== metaKeys.logLevel);
  const members = JSON.stringify(Object.fromEntries(Object.entries(meta).filter(isTheirs))).slice(1, -1);
  return members === "" ? undefined : members;
}

/** Takes `_meta` out of the params of a request, because the client writes one itself. */
export function splitMeta(given: object | undefined): {
  readonly params: RawJson | undefined;
  readonly meta: string | undefined;
} {
  if (given === undefined) return { params: undefined, meta: undefined };
  const params = toJsonValue(given) as { readonly [key: string]: unknown };
  if (!Object.hasOwn(params, "_meta")) return { params: RawJson.fromValue(params), meta: undefined };
  const { _meta, ...rest } = params;
  return { params: RawJson.fromValue(rest), meta: toMetaMembers(_meta) };
}
