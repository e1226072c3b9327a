import { prependMembers } from "../json/join.ts";
import { RawJson } from "../json/raw.ts";
import { editMembers } from "../json/splice.ts";
import type { Era } from "../mcp/era.ts";
import { metaKeys } from "../mcp/meta-keys.ts";
import { withoutModernMembers } from "../mcp/project/result.ts";
import type { CacheHints, Implementation } from "../mcp/types.ts";
import type { Provider } from "../tools/provider.ts";
import type { FinishPage } from "./pages.ts";

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

/** Makes the pages of a provider's lists ready: with how long they may be kept, and what it says about them. */
export function createFinishPage(provider: Provider, finish: Finish): FinishPage {
  return (page, era, items) => {
    const meta = provider.listMeta?.(items);
    const noted = meta === undefined ? page : prependMembers(`"_meta":${JSON.stringify(meta)}`, page);
    return finish(noted, era, hintsOf(provider));
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
