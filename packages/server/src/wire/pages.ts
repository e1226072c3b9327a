import { Buffer } from "node:buffer";
import { RpcError } from "@junctor/core/errors";
import { editMembers, joinJson, prependMembers, RawJson } from "@junctor/core/json";
import {
  definitionOf,
  type Era,
  type Items,
  keyOf,
  type Part,
  projectListed,
  projectPrompt,
  projectTool,
  type Resource,
  type Revision,
} from "@junctor/core/mcp";
import type { Listing } from "@junctor/core/provider";
import { type Finish, revisionOf, uncached } from "./served.ts";

interface PagerOptions<P extends Part> {
  readonly part: P;
  /** The member of the result that holds the items. */
  readonly member: string;
  readonly pageSize: number;
  readonly finish: Finish;
  /** Hears of an item that cannot be written. It is left out: one of a provider's things must not take the others with it. */
  readonly onFault: (error: unknown) => void;
}

/** One page of a list, as a finished result. */
type Pager<P extends Part> = (listing: Listing<Items[P]>, cursor: RawJson | undefined, era: Era) => RawJson;

const projections: { readonly [P in Part]: (item: Items[P], revision: Revision) => Items[P] } = {
  tools: projectTool,
  prompts: projectPrompt,
  resources: projectListed,
  templates: projectListed,
  skills: (skill) => skill,
  groups: (group) => group,
};

/** A skill may list 512 files, which is 80 KB: so many of them are a page. */
const maxSkills = 100;

/** Pages lists, and keeps what it serialised for as long as the list lives: a page of a list is written once per revision. */
export function createPager<P extends Part>(options: PagerOptions<P>): Pager<P> {
  const { part, member, finish, onFault } = options;
  const pageSize = part === "skills" ? Math.min(options.pageSize, maxSkills) : options.pageSize;
  const project: (item: Items[P], revision: Revision) => Items[P] = projections[part];
  const written = new WeakMap<Listing<Items[P]>, Map<string, RawJson>>();

  const write = ({ items, meta, hints = uncached }: Listing<Items[P]>, start: number, era: Era): RawJson => {
    const revision = revisionOf(era);
    const shown = items.slice(start, start + pageSize);
    const page = shown.flatMap((item) => {
      try {
        return [definitionOf(project(item, revision))];
      } catch (error) {
        const text = `Left out of the ${member}: ${keyOf(item)}, which cannot be listed`;
        onFault(new TypeError(text, { cause: error }));
        return [];
      }
    });
    const last = shown.at(-1);
    const hasMore = start + shown.length < items.length && last !== undefined;
    const next = hasMore ? `,"nextCursor":"${toCursor(keyOf(last))}"` : "";
    const parts = page.flatMap((item, index) => (index === 0 ? [item] : [",", item]));
    const whole = joinJson([`{"${member}":[`, ...parts, `]${next}}`]);
    const noted = meta === undefined ? whole : prependMembers(`"_meta":${JSON.stringify(meta)}`, whole);
    return finish(noted, era, hints);
  };

  return (listing, cursor, era) => {
    const start = cursor === undefined ? 0 : startAfter(listing.items, cursor);
    // Only the pages of a walk from the start are kept: there is a cursor for every item, and a client may try them all.
    if (start % pageSize !== 0) return write(listing, start, era);
    let pages = written.get(listing);
    if (pages === undefined) written.set(listing, (pages = new Map<string, RawJson>()));
    const key = `${revisionOf(era)} ${start}`;
    let page = pages.get(key);
    if (page === undefined) pages.set(key, (page = toKept(write(listing, start, era))));
    return page;
  };
}

/**
 * The page of a folder that a cursor names, from a result with all that is in it. A provider that makes pages itself keeps its own:
 * a cursor that is not ours is for it.
 */
export function toDirectoryPage(
  result: RawJson,
  cursor: RawJson | undefined,
  revision: Revision,
  pageSize: number,
): RawJson {
  const { resources: all } = result.value as { readonly resources?: readonly Resource[] };
  if (all === undefined) return result;
  const start = cursor === undefined ? 0 : all.findIndex(({ uri }) => toCursor(uri) === cursor.value) + 1;
  const end = result.has("nextCursor") ? all.length : start + pageSize;
  const shown = all.slice(start, end).map((resource) => projectListed(resource, revision));
  const last = shown.at(-1);
  const next = end < all.length && last !== undefined ? toCursor(last.uri) : undefined;
  if (shown.length === all.length && shown.every((resource, index) => resource === all[index])) return result;
  return editMembers(result, {
    resources: RawJson.fromValue(shown),
    ...(next === undefined ? {} : { nextCursor: RawJson.fromValue(next) }),
  });
}

/** From here on, encoding a page for every caller costs more than the rest of the answer. */
const minEncodedLength = 16 * 1024;

/** Pages that are sent many times are kept as bytes. */
function toKept(page: RawJson): RawJson {
  return page.written.length < minEncodedLength ? page : RawJson.fromChecked(page.bytes);
}

/** A cursor names the last item already seen, so that a change elsewhere in the list skips and repeats nothing. */
function toCursor(key: string): string {
  return Buffer.from(key, "utf8").toString("base64url");
}

function startAfter(items: readonly Items[Part][], cursor: RawJson): number {
  const text = cursor.kind === "string" ? (cursor.value as string) : "";
  const key = Buffer.from(text, "base64url").toString("utf8");
  const index = toCursor(key) === text ? items.findIndex((item) => keyOf(item) === key) : -1;
  if (index === -1)
    throw new RpcError("rpc.invalid_params", "Invalid params: unknown cursor; list again from the start");
  return index + 1;
}
