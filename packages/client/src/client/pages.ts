import { RpcError } from "@junctor/core/errors";
import { joinJson, RawJson, scanElements } from "@junctor/core/json";
import type { CacheHints } from "@junctor/core/mcp";
import { describeValue } from "@junctor/core/schema";

/** A list that was walked to its end. */
interface Walked {
  readonly items: readonly RawJson[];
  /** The strictest any page gave. */
  readonly hints: CacheHints;
}

export interface WalkLimits {
  readonly maxPages: number;
  readonly maxItems: number;
  /** Most bytes of all pages together. */
  readonly maxBytes: number;
}

/**
 * Follows a list to its last page. A cursor seen before, and more pages or items than the limits allow, end it with an
 * error: a server that never ends its list must not fill our memory.
 */
export async function walkPages(
  request: (params: RawJson | undefined) => Promise<RawJson>,
  member: string,
  { maxPages, maxItems, maxBytes }: WalkLimits,
): Promise<Walked> {
  const items: RawJson[] = [];
  const seen = new Set<string>();
  let hints: CacheHints = { ttlMs: Number.POSITIVE_INFINITY, cacheScope: "public" };
  let cursor: RawJson | undefined;
  let bytes = 0;
  for (let page = 1; page <= maxPages; page++) {
    const result = await request(cursor === undefined ? undefined : joinJson(['{"cursor":', cursor, "}"]));
    bytes += result.byteLength;
    if (bytes > maxBytes)
      throw new RpcError("rpc.other", `The server's list of ${member} is longer than ${maxBytes} bytes`);
    // One more than may be is enough to know that there are too many.
    for (const item of elementsOf(result, member, maxItems + 1 - items.length)) items.push(item);
    hints = strictest(hints, result);
    if (items.length > maxItems)
      throw new RpcError("rpc.other", `The server lists more than ${maxItems} ${member}`);
    cursor = result.at("nextCursor");
    // An empty string is a cursor like any other.
    if (cursor?.kind !== "string") return { items, hints };
    if (seen.has(cursor.text))
      throw new RpcError("rpc.other", `The server's list of ${member} goes in circles`);
    seen.add(cursor.text);
  }
  throw new RpcError("rpc.other", `The server's list of ${member} has more than ${maxPages} pages`);
}

/** A result without the member is taken for an empty page; with anything else than an array it is no list. */
export function elementsOf(result: RawJson, member: string, maxElements: number): readonly RawJson[] {
  const array = result.at(member);
  if (array === undefined || array.kind === "null") return [];
  if (array.kind !== "array")
    throw new RpcError(
      "rpc.other",
      `The server's list of ${member} is no array, but ${describeValue(array.value)}`,
    );
  const { bytes } = array;
  const spans = scanElements(bytes, { maxElements });
  return spans.map(({ start, end }) => RawJson.fromChecked(bytes.subarray(start, end)));
}

function strictest(hints: CacheHints, result: RawJson): CacheHints {
  const ttlMs = result.at("ttlMs")?.value;
  const isPublic = result.at("cacheScope")?.value === "public";
  return {
    ttlMs: Math.min(hints.ttlMs, typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : 0),
    cacheScope: isPublic ? hints.cacheScope : "private",
  };
}
