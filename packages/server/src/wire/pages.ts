import { Buffer } from "node:buffer";
import type { Awaitable } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import { joinJson, prependMembers, RawJson } from "@junctor/core/json";
import { type Era, type Revision, definitionOf } from "@junctor/core/mcp";
import type { CallContext, OldProvider } from "@junctor/core/provider";
import { type Finish, hintsOf, type Method, revisionOf } from "./served.ts";

/** How one kind of list goes on the wire. */
interface PagerOptions<T> {
  /** The member of the result that holds the items. */
  readonly member: string;
  readonly keyOf: (item: T) => string;
  readonly project: (item: T, revision: Revision) => T;
  readonly pageSize: number;
  readonly finish: FinishPage;
  /** Hears of an item that cannot be written. It is left out: one of a provider's things must not take the others with it. */
  readonly onFault: (error: unknown) => void;
}

/** Makes the method that serves the pages of one list. `maxPage` is for things that are long. */
export type ServeList = <T extends object>(
  spec: Omit<PagerOptions<T>, "pageSize" | "finish" | "onFault"> & { readonly maxPage?: number },
  list: (context: CallContext, params: RawJson | undefined) => Awaitable<readonly T[]>,
) => Method;

/** Makes a page of a list ready for its era. */
type FinishPage = (page: RawJson, era: Era, items: readonly object[]) => RawJson;

/** One page of a list, as a finished result. */
type Pager<T> = (items: readonly T[], cursor: RawJson | undefined, era: Era) => RawJson;

/**
 * Pages lists and keeps what it serialised for as long as the list lives: frozen arrays do not change, so a page of
 * one is written once per revision.
 */
export function createPager<T extends object>(options: PagerOptions<T>): Pager<T> {
  const { member, keyOf, project, pageSize, finish, onFault } = options;
  const written = new WeakMap<readonly T[], Map<string, RawJson>>();

  const write = (items: readonly T[], start: number, era: Era): RawJson => {
    const revision = revisionOf(era);
    const shown = items.slice(start, start + pageSize);
    const page = shown.flatMap((item) => {
      try {
        return [definitionOf(project(item, revision))];
      } catch (error) {
        onFault(
          new TypeError(`Left out of the ${member}: ${keyOf(item)}, which cannot be listed`, {
            cause: error,
          }),
        );
        return [];
      }
    });
    const last = shown.at(-1);
    const hasMore = start + shown.length < items.length && last !== undefined;
    const next = hasMore ? `,"nextCursor":"${toCursor(keyOf(last))}"` : "";
    const parts = page.flatMap((item, index) => (index === 0 ? [item] : [",", item]));
    return finish(joinJson([`{"${member}":[`, ...parts, `]${next}}`]), era, items);
  };

  return (items, cursor, era) => {
    const start = cursor === undefined ? 0 : startAfter(items, cursor, keyOf);
    // Only the pages of a walk from the start are kept: there is a cursor for every item, and a client may try them all.
    if (!Object.isFrozen(items) || start % pageSize !== 0) return write(items, start, era);
    let pages = written.get(items);
    if (pages === undefined) written.set(items, (pages = new Map<string, RawJson>()));
    const key = `${revisionOf(era)} ${start}`;
    let page = pages.get(key);
    if (page === undefined) pages.set(key, (page = toKept(write(items, start, era))));
    return page;
  };
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

function startAfter<T>(items: readonly T[], cursor: RawJson, keyOf: (item: T) => string): number {
  const text = cursor.kind === "string" ? (cursor.value as string) : "";
  const key = Buffer.from(text, "base64url").toString("utf8");
  const index = toCursor(key) === text ? items.findIndex((item) => keyOf(item) === key) : -1;
  if (index === -1)
    throw new RpcError("rpc.invalid_params", "Invalid params: unknown cursor; list again from the start");
  return index + 1;
}

/** Makes the pages of a provider's lists ready: with how long they may be kept, and what it says about them. */
export function createFinishPage(provider: OldProvider, finish: Finish): FinishPage {
  return (page, era, items) => {
    const meta = provider.listMeta?.(items);
    const noted = meta === undefined ? page : prependMembers(`"_meta":${JSON.stringify(meta)}`, page);
    return finish(noted, era, hintsOf(provider));
  };
}
