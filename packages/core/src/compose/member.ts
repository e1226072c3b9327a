import type { CacheHints, Items } from "../mcp/index.ts";
import type { CallContext, CallerInfo, Outcome, Provider, Round } from "../provider/index.ts";

/** The lists that a catalog merges. Members are asked for the others each time. */
export type ListPart = "tools" | "prompts" | "resources" | "templates";

/** The lists of a provider. An array that did not change is the same array. */
export interface MemberLists extends Readonly<{ [P in ListPart]: readonly Items[P][] }> {
  /** How long they may be kept; not at all when left out. */
  readonly hints?: CacheHints | undefined;
  /**
   * Whether a URI is kept from all callers, though it fits a template or the provider may know it. When left
   * out, callers may use every URI.
   */
  readonly withholds?: ((uri: string) => boolean) | undefined;
}

/** The names that callers know a member's things by. The same object as long as they stay the same. */
export interface MemberNames {
  /** The name of a tool, and its description if that differs; undefined for a tool that is hidden. */
  tool(ownName: string): { readonly name: string; readonly description?: string | undefined } | undefined;
  prompt(ownName: string): string;
  /** Whether the member may turn out to have a tool or prompt that callers know by this name. */
  mayOwn(name: string): boolean;
}

/** One provider of a composition: where its lists come from, and how its things are named. */
export interface Member {
  readonly name: string;
  readonly provider: Provider;
  readonly names: MemberNames;
  /** Whether it was ever listed. */
  readonly isListed: boolean;
  /** Its lists for a caller, as far as they are known now. */
  listsFor(caller: CallerInfo): MemberLists;
  /**
   * Called when a caller looks at a list. A promise means that the list is not known yet; it settles when the
   * list is known or the wait has been long enough.
   */
  beginListing(context: CallContext, part: ListPart): Promise<unknown> | undefined;
  /**
   * Called when a caller names something that is in no list and may be this member's. A promise means that
   * its list may still change.
   */
  untilListed(context: CallContext, part: ListPart): Promise<unknown> | undefined;
  /** Why a call that may have been for it cannot be sent; undefined once its lists are known. */
  unavailable?(): Error | undefined;
  /**
   * Called when a caller calls a tool that is in no list and may belong to this member, which lists nothing
   * until the caller has done something. Resolves with the outcome that asks for it, or with undefined when
   * it is done and the lists are known.
   */
  askFirst?(context: CallContext, round: Round | undefined): Promise<Outcome | undefined>;
}
