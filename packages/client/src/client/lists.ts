import { type Awaitable, type Clock, type TimeLimits, createSlices } from "@junctor/core/async";
import { RpcError, rpcCodes } from "@junctor/core/errors";
import {
  maxListMs,
  type Fit,
  fitPrompt,
  fitResource,
  fitTemplate,
  fitTool,
  type ListFault,
  type ListPart,
  describeNotes,
  toListFault,
} from "@junctor/core/fit";
import { RawJson, joinJson, scanElements } from "@junctor/core/json";
import {
  type CacheHints,
  type Prompt,
  type Resource,
  type ResourceTemplate,
  type Tool,
  strictestOf,
} from "@junctor/core/mcp";
import { Listing } from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import type { Conversation } from "./conversation.ts";

/** Everything a server lists. */
export interface Lists {
  readonly tools: KeptList<Tool>;
  readonly resources: KeptList<Resource>;
  readonly templates: KeptList<ResourceTemplate>;
  readonly prompts: KeptList<Prompt>;
  /** The strictest of what the server said about keeping its lists. */
  hints(): CacheHints;
  /** The faults of the lists that were fetched last. */
  faults(): readonly ListFault[];
  /** Marks a list as outdated: it changed, or may have. */
  invalidate(part: "tools" | "resources" | "prompts"): void;
}

interface ListsOptions extends WalkLimits {
  readonly clock: Clock;
  /** Lists are kept at most this long, whatever the server says. */
  readonly maxTtlMs: number;
  readonly isHttp: boolean;
  readonly maxTools: number;
  /** The definitions that the server does not list because they are in groups. */
  readonly groupedIn: (member: string) => Promise<readonly RawJson[]>;
  /** Called for each definition that is mended or left out, unless it was so in the list before. */
  readonly onListFault: (fault: ListFault, method: string) => void;
}

/** A request under a deadline of its own. */
export type PlainRequest = (
  method: string,
  params: RawJson | undefined,
  limits?: TimeLimits,
) => Promise<RawJson>;

/** For a list that the server does not offer: it is empty, and stays so. */
const forever: CacheHints = { ttlMs: Number.POSITIVE_INFINITY, cacheScope: "public" };

/** Stands for the list of a server that declares a capability and lacks one of its methods: many have no resource templates. */
const noItems: RawJson = RawJson.fromValue({});

type Capability = "tools" | "resources" | "prompts";

export function createLists(
  converse: () => Promise<Conversation>,
  request: PlainRequest,
  options: ListsOptions,
): Lists {
  const { clock, maxTtlMs, isHttp, onListFault } = options;

  const createList = <T extends object>(
    method: string,
    capability: Capability,
    readerFor: (isLegacy: boolean) => ListReader<T>,
  ): KeptList<T> => {
    const fetch = async (): Promise<Fetched<T>> => {
      const conversation = await converse();
      const { agreement } = conversation;
      const isLegacy = agreement.mode.kind === "legacy";
      const offered = agreement.capabilities[capability];
      if (offered === undefined) return { items: [], faults: [], ttlMs: maxTtlMs, hints: forever };
      const reader = readerFor(isLegacy);
      const member = reader.part === "templates" ? "resourceTemplates" : reader.part;
      const ask = (params: RawJson | undefined): Promise<RawJson> =>
        request(method, params).catch((error: unknown) => {
          if (capability !== "tools" && params === undefined && isUnknownMethod(error)) return noItems;
          throw error;
        });
      const { items: top, hints } = await walkPages(ask, member, {
        ...options,
        maxItems: member === "tools" ? options.maxTools : options.maxItems,
      });
      const { items, faults } = await fitList([...top, ...(await options.groupedIn(member))], reader);
      const reported = new Set(list.faults.map(toText));
      for (const fault of faults) if (!reported.has(toText(fault))) onListFault(fault, method);
      // Legacy servers give no time. The list of one that announces changes is kept until it does, if announcements reach us:
      // a pipe always carries them, HTTP only on an open stream.
      const isTrusted = offered.listChanged === true && (!isHttp || conversation.isHearing);
      const givenMs = isLegacy ? (isTrusted ? maxTtlMs : 0) : hints.ttlMs;
      return { items, faults, ttlMs: Math.min(givenMs, maxTtlMs), hints };
    };
    const list = new KeptList(fetch, clock);
    return list;
  };

  const tools = createList<Tool>("tools/list", "tools", (isLegacy) => {
    const terms = { isLegacy, isMirroring: isHttp && !isLegacy, budget: { leftMs: maxListMs } };
    return { part: "tools", key: "name", fit: (raw) => fitTool(raw, terms) };
  });
  const resources = createList<Resource>("resources/list", "resources", () => {
    return { part: "resources", key: "uri", fit: fitResource };
  });
  const templates = createList<ResourceTemplate>("resources/templates/list", "resources", () => {
    return { part: "templates", key: "uriTemplate", fit: fitTemplate };
  });
  const prompts = createList<Prompt>("prompts/list", "prompts", () => {
    return { part: "prompts", key: "name", fit: fitPrompt };
  });
  const all = [tools, resources, templates, prompts];
  const changed = { tools: [tools], prompts: [prompts], resources: [resources, templates] };
  return {
    tools,
    resources,
    templates,
    prompts,
    hints: () => strictestOf(all.flatMap((list) => list.last?.hints ?? [])),
    faults: () => all.flatMap(({ faults }) => faults),
    invalidate: (part) => changed[part].forEach((list) => list.invalidate()),
  };
}

function isUnknownMethod(error: unknown): boolean {
  return error instanceof RpcError && error.rpcCode === rpcCodes["rpc.method_not_found"];
}

function toText({ name, reason }: ListFault): string {
  return `${name}\n${reason}`;
}

/** How the definitions of one list are read. */
interface ListReader<T> {
  readonly part: ListPart;
  /** The member that identifies a definition: no two of a list may share its value. */
  readonly key: string;
  fit(raw: RawJson): Awaitable<Fit<T>>;
}

/** The most faults of one list that are kept. */
const maxFaults = 1000;

/** Reads what a server listed. Definitions that clients would refuse are mended or left out, and reported as faults. */
async function fitList<T extends object>(
  raws: readonly RawJson[],
  { part, key, fit }: ListReader<T>,
): Promise<{ readonly items: readonly T[]; readonly faults: readonly ListFault[] }> {
  const items: T[] = [];
  const faults: ListFault[] = [];
  const seen = new Set<unknown>();
  const report = (name: string, isLeftOut: boolean, reason: string): void => {
    if (faults.length < maxFaults) faults.push(toListFault(part, name, isLeftOut, reason));
  };
  const pause = createSlices();
  for (const [index, raw] of raws.entries()) {
    const turn = pause();
    if (turn !== undefined) await turn;
    const fitted = await fit(raw);
    const id = raw.kind === "object" ? (raw.value as { readonly [key: string]: unknown })[key] : undefined;
    const name = typeof id === "string" ? id : `#${index + 1}`;
    if (fitted.kind === "unfit") report(name, true, fitted.reason);
    else if (seen.has(id)) report(name, true, `its ${key} is listed twice; the first one is used`);
    else {
      seen.add(id);
      items.push(fitted.item);
      if (fitted.notes.length > 0) report(name, false, describeNotes(fitted.notes));
    }
  }
  return { items, faults };
}

/** A fetched list, and how long it may be kept. */
export interface Fetched<T extends object> {
  readonly items: readonly T[];
  /** Its definitions that were mended or left out. */
  readonly faults: readonly ListFault[];
  readonly ttlMs: number;
  /** What the server said about keeping it. */
  readonly hints: CacheHints;
}

/**
 * A list that is fetched when needed and kept while fresh. Callers that ask at the same time share one fetch. A list during
 * whose fetch a change was announced is handed out but not kept.
 */
export class KeptList<T extends object> {
  readonly #fetch: () => Promise<Fetched<T>>;
  readonly #clock: Clock;
  #kept:
    | {
        readonly listing: Listing<T>;
        readonly faults: readonly ListFault[];
        readonly freshUntil: number;
        readonly generation: number;
      }
    | undefined;
  #underway: Promise<Listing<T>> | undefined;
  #generation = 0;

  constructor(fetch: () => Promise<Fetched<T>>, clock: Clock) {
    this.#fetch = fetch;
    this.#clock = clock;
  }

  /** The list that was fetched last, fresh or not. */
  get last(): Listing<T> | undefined {
    return this.#kept?.listing;
  }

  /** The same, if it is fresh. */
  get fresh(): Listing<T> | undefined {
    return this.#kept !== undefined && this.#clock.now() < this.#kept.freshUntil
      ? this.#kept.listing
      : undefined;
  }

  /** The definitions that were mended in, or left out of, the list that was fetched last. */
  get faults(): readonly ListFault[] {
    return this.#kept?.faults ?? [];
  }

  /** The list, fetched if the kept one is not fresh. */
  get(): Promise<Listing<T>> {
    const { fresh } = this;
    return fresh === undefined ? (this.#underway ??= this.#refresh()) : Promise.resolve(fresh);
  }

  /** Marks it as changed: the next `get` fetches it again. */
  invalidate(): void {
    this.#generation++;
    this.#underway = undefined;
    if (this.#kept !== undefined) this.#kept = { ...this.#kept, freshUntil: 0 };
  }

  async #refresh(): Promise<Listing<T>> {
    const generation = this.#generation;
    try {
      const { items, faults, ttlMs, hints } = await this.#fetch();
      const listing = new Listing(Object.freeze(items), { hints });
      const isCurrent = generation === this.#generation;
      // A slow answer must not replace the answer to a later request.
      if (this.#kept === undefined || generation >= this.#kept.generation) {
        const freshUntil = isCurrent ? this.#clock.now() + ttlMs : 0;
        this.#kept = { listing, faults, freshUntil, generation };
      }
      return listing;
    } finally {
      if (generation === this.#generation) this.#underway = undefined;
    }
  }
}

/** A list that was walked to its end. */
interface Walked {
  readonly items: readonly RawJson[];
  /** The strictest any page gave. */
  readonly hints: CacheHints;
}

interface WalkLimits {
  readonly maxPages: number;
  readonly maxItems: number;
  /** The most bytes of all pages together. */
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
    // One element more than allowed is enough to know that there are too many.
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

/** The elements of a list in a result; none if the member is missing. Throws if it is not an array. */
export function elementsOf(result: RawJson, member: string, maxElements: number): readonly RawJson[] {
  const array = result.at(member);
  if (array === undefined || array.kind === "null") return [];
  if (array.kind !== "array")
    throw new RpcError(
      "rpc.other",
      `The server's list of ${member} is not an array, but ${describeValue(array.value)}`,
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
