import type { Client, ConnectOptions } from "@junctor/client";
import type { MemberLists } from "@junctor/core/compose";
import { ConfigError, UriTemplateError } from "@junctor/core/errors";
import { type ListPart, toListFault } from "@junctor/core/fit";
import { type JsonObject, RawJson } from "@junctor/core/json";
import { definitionOf, fromDefinition, parseUriTemplate } from "@junctor/core/mcp";
import { foldCase, spellingsOf } from "@junctor/core/provider";
import type { LockConfig } from "../config/index.ts";
import { junctor } from "../invocation/index.ts";
import { type GatewayLog, hideEverywhere } from "../log/index.ts";
import { digestOf, type Lock, type LockPart, readLock, toCanonicalJson } from "./lock-file.ts";

/** A thing of a server whose definition is not the one in the lock. */
export interface Unapproved {
  readonly part: LockPart;
  /** The server's own name for it, in 200 characters at most. */
  readonly name: string;
  readonly why: "new" | "changed";
  /** Whether callers cannot see or use it. */
  readonly isHeldBack: boolean;
}

/** The JSON of a definition as a lock has it. */
export type PinnedJson = (part: LockPart, item: unknown) => string;

/** A thing that was compared: its JSON as it came, the verdict, and the thing with the JSON that was compared. */
interface ComparedThing {
  readonly text: string;
  readonly why: Unapproved["why"] | undefined;
  readonly plain: object;
}

/** The things of one list by name. */
type Judged = Map<string, ComparedThing>;

/** One list, compared with the lock. */
interface Compared {
  readonly admitted: readonly object[];
  readonly unapproved: readonly Unapproved[];
  /** The names of things that are held back, in full. */
  readonly held: readonly string[];
}

/** The lists of a server, in the order of their type. */
const parts: readonly ListPart[] = ["tools", "prompts", "resources", "templates"];

/** How many definitions are compared before other work gets its turn. */
const sliceLength = 100;
/** The most things that one line of the log names. */
const maxNamed = 20;
/** Things that were logged; beyond this number they are forgotten and may be logged again. */
const maxLogged = 10_000;

interface PinsOptions {
  readonly log: GatewayLog;
  readonly toJson: PinnedJson;
  /** Whether the definitions of a server need no approval. */
  readonly isExempt: (server: string) => boolean;
}

/**
 * Reads the lock of a config; undefined when definitions need no approval. Throws a `ConfigError` when the lock cannot be
 * used and must be; where it only warns, the log says so.
 */
export function openPins(config: LockConfig | undefined, options: PinsOptions): Pins | undefined {
  if (config === undefined) return undefined;
  const { file, mode } = config;
  const state = readLock(file);
  if (state.kind === "read") return new Pins(state.lock, config, options);
  if (mode === "enforce") throw new ConfigError(file, [{ path: "", message: state.message }]);
  options.log.warn({ lock: file }, `the lock ${state.message}`);
  return undefined;
}

/** The approved definitions, compared with the definitions that servers list. */
export class Pins {
  readonly #options: PinsOptions;
  readonly #file: string;
  readonly #isHeldBack: boolean;
  readonly #skipped: ReadonlySet<LockPart>;
  readonly #digests: Digests;
  readonly #comparedLists = new Map<string, WeakMap<readonly object[], Compared>>();
  readonly #comparedThings = new WeakMap<object, ComparedThing>();
  readonly #lastJudged = new Map<string, Judged>();
  readonly #logged = new Set<string>();

  constructor(lock: Lock, { mode, skip, file }: LockConfig, options: PinsOptions) {
    this.#options = options;
    this.#file = file;
    this.#isHeldBack = mode === "enforce";
    this.#skipped = new Set<LockPart>(skip);
    this.#digests = toDigests(lock);
  }

  /** Compares a list that just came, a slice at a time: 10,000 definitions would hold up all other calls. */
  async prepare(server: string, part: ListPart, items: readonly object[]): Promise<void> {
    if (this.#isLeftOut(server, part)) return;
    for (const [index, item] of items.entries()) {
      this.#compareThing(server, part, item);
      // Other work of this process gets its turn.
      if (index % sliceLength === sliceLength - 1) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** The lists without the things that are held back. The same array for the same array. */
  admit(server: string, lists: MemberLists): MemberLists {
    if (!this.#isHeldBack) return lists;
    const admittedOf = <Part extends ListPart>(part: Part): MemberLists[Part] =>
      this.#compare(server, part, lists[part]).admitted as MemberLists[Part];
    const held = (["resources", "templates"] as const).flatMap(
      (part) => this.#compare(server, part, lists[part]).held,
    );
    const admitted = {
      tools: admittedOf("tools"),
      prompts: admittedOf("prompts"),
      resources: admittedOf("resources"),
      templates: admittedOf("templates"),
    };
    return held.length === 0 ? admitted : { ...admitted, withholds: createWithholds(admitted, held) };
  }

  admitsInstructions(server: string, instructions: string): boolean {
    return !this.#isHeldBack || this.#judgeInstructions(server, instructions) === undefined;
  }

  /** How many things of a list are held back. */
  heldBack(server: string, part: ListPart, items: readonly object[]): number {
    return this.#compare(server, part, items).held.length;
  }

  /** Everything of a server that differs from the lock. */
  unapproved(server: string, lists: MemberLists, instructions: string | undefined): readonly Unapproved[] {
    const why = this.#judgeInstructions(server, instructions);
    const ofInstructions = why === undefined ? [] : [toUnapproved("instructions", "", why, this.#isHeldBack)];
    return [
      ...ofInstructions,
      ...parts.flatMap((part) => this.#compare(server, part, lists[part]).unapproved),
    ];
  }

  /** Logs what differs, once for each thing. */
  logUnapproved(server: string, lists: MemberLists, instructions: string | undefined): void {
    const keyOf = ({ part, name, why }: Unapproved): string => JSON.stringify([server, part, name, why]);
    const logged = this.#logged;
    const fresh = this.unapproved(server, lists, instructions).filter((each) => !logged.has(keyOf(each)));
    if (fresh.length === 0) return;
    if (logged.size + fresh.length > maxLogged) logged.clear();
    for (const each of fresh.slice(0, maxLogged)) logged.add(keyOf(each));
    const named = fresh.slice(0, maxNamed).map(({ part, name, why }) => ({ part, name, why }));
    const things = fresh.length === 1 ? "1 definition" : `${fresh.length} definitions`;
    const done = this.#isHeldBack ? "held back until approved" : "used all the same";
    const text = `${server} has ${things} that the lock has not: ${done}; ${junctor("trust")} shows them`;
    this.#options.log.warn({ server, lock: this.#file, unapproved: named }, text);
  }

  #isLeftOut(server: string, part: LockPart): boolean {
    return this.#options.isExempt(server) || this.#skipped.has(part);
  }

  #judge(server: string, part: LockPart, name: string, item: unknown): Unapproved["why"] | undefined {
    const approved = this.#digests.get(server)?.get(part)?.get(name);
    if (approved === undefined) return "new";
    return approved.includes(digestOf(this.#options.toJson(part, item))) ? undefined : "changed";
  }

  #judgeInstructions(server: string, text: string | undefined): Unapproved["why"] | undefined {
    return text === undefined || this.#isLeftOut(server, "instructions")
      ? undefined
      : this.#judge(server, "instructions", "", text);
  }

  #compare(server: string, part: ListPart, items: readonly object[]): Compared {
    if (this.#isLeftOut(server, part)) return { admitted: items, unapproved: [], held: [] };
    let known = this.#comparedLists.get(server);
    if (known === undefined) this.#comparedLists.set(server, (known = new WeakMap()));
    let compared = known.get(items);
    if (compared === undefined) known.set(items, (compared = this.#compareAll(server, part, items)));
    return compared;
  }

  #compareAll(server: string, part: ListPart, items: readonly object[]): Compared {
    const admitted: object[] = [];
    const unapproved: Unapproved[] = [];
    const held: string[] = [];
    const judged: Judged = new Map();
    for (const item of items) {
      const name = nameOf(part, item);
      const compared = this.#compareThing(server, part, item);
      const { why, plain } = compared;
      judged.set(name, compared);
      if (why === undefined) admitted.push(plain);
      else {
        unapproved.push(toUnapproved(part, name, why, this.#isHeldBack));
        held.push(name);
      }
    }
    this.#lastJudged.set(`${part} ${server}`, judged);
    if (!this.#isHeldBack) return { admitted: items, unapproved, held: [] };
    const isSame = items.length === admitted.length && items.every((item, index) => item === admitted[index]);
    return { admitted: isSame ? items : Object.freeze(admitted), unapproved, held };
  }

  #compareThing(server: string, part: ListPart, item: object): ComparedThing {
    const known = this.#comparedThings.get(item);
    if (known !== undefined) return known;
    const name = nameOf(part, item);
    const { text } = definitionOf(item);
    const last = this.#lastJudged.get(`${part} ${server}`)?.get(name);
    // When a list gets a new thing, the others mostly stay as they were.
    const isKnown = last?.text === text;
    const why = isKnown ? last.why : this.#judge(server, part, name, item);
    const plain = isKnown ? last.plain : why === undefined && this.#isHeldBack ? toPlain(item) : item;
    const compared = { text, why, plain };
    this.#comparedThings.set(item, compared);
    return compared;
  }
}

/**
 * Makes the JSON of definitions as a lock has them. The secrets of the config are replaced, because a lock is shared, and
 * members that follow the content of a resource are left out.
 */
export function createPinnedJson(
  secrets: () => readonly string[],
  hide: (json: string) => string,
): PinnedJson {
  return (part, item) => {
    const json = toCanonicalJson(part === "resources" || part === "templates" ? withoutContent(item) : item);
    const isSecret = secrets().some((secret) => json.includes(JSON.stringify(secret).slice(1, -1)));
    return isSecret ? toCanonicalJson(hideEverywhere(json, hide)) : json;
  };
}

/** What a server calls a thing. */
export function nameOf(part: ListPart, item: object): string {
  const { name, uri, uriTemplate } = item as { readonly [key: string]: string };
  return (part === "resources" ? uri : part === "templates" ? uriTemplate : name) ?? "";
}

function withoutContent(item: unknown): unknown {
  const { size: _, annotations, ...rest } = item as JsonObject;
  if (annotations === undefined) return rest;
  const { lastModified: __, ...lasting } = annotations as JsonObject;
  return Object.keys(lasting).length === 0 ? rest : { ...rest, annotations: lasting };
}

function toUnapproved(part: LockPart, name: string, why: Unapproved["why"], isHeldBack: boolean): Unapproved {
  const listed = part === "instructions" ? "tools" : part;
  return { part, name: toListFault(listed, name, isHeldBack, why).name, why, isHeldBack };
}

/**
 * The thing with the JSON that was compared. The bytes of a server may have a key twice, or a number that no double holds:
 * clients read such bytes in different ways, and not all of them would see what was approved.
 */
function toPlain(item: object): object {
  const json = JSON.stringify(item);
  return definitionOf(item).text === json ? item : fromDefinition(RawJson.fromText(json));
}

type Digests = ReadonlyMap<string, ReadonlyMap<LockPart, ReadonlyMap<string, readonly string[]>>>;

function toDigests(lock: Lock): Digests {
  const toEntry = (thing: unknown): readonly string[] =>
    (Array.isArray(thing) ? thing : [thing]).map((variant) => digestOf(toCanonicalJson(variant)));
  const toEntries = (things: ReadonlyMap<string, unknown>): ReadonlyMap<string, readonly string[]> =>
    new Map(Array.from(things, ([name, thing]) => [name, toEntry(thing)]));
  return new Map(
    Array.from(lock, ([server, approved]) => [
      server,
      new Map(Array.from(approved, ([part, things]) => [part, toEntries(things)])),
    ]),
  );
}

/** Where a server has more templates that are held back, every URI that is not approved itself is held back. */
const maxTemplates = 100;

/** Finds URIs that are held back, or fit a template that is, in any spelling and any case. */
export function createWithholds(
  { resources, templates }: MemberLists,
  held: readonly string[],
): NonNullable<MemberLists["withholds"]> {
  const approved = new Set([
    ...resources.map(({ uri }) => uri),
    ...templates.map(({ uriTemplate }) => uriTemplate),
  ]);
  let spelled: ReadonlySet<string> | undefined;
  const heldTemplates = held.flatMap(toTemplate);
  const foldedTemplates = held.map(foldCase).flatMap(toTemplate);
  return (uri) => {
    if (approved.has(uri)) return false;
    if (heldTemplates.length > maxTemplates) return true;
    const spellings = spellingsOf(uri);
    const known = (spelled ??= new Set(held.flatMap(spellingsOf).map(foldCase)));
    return spellings.some((spelling) => {
      const folded = foldCase(spelling);
      return (
        known.has(folded) ||
        heldTemplates.some(({ match }) => match(spelling) !== undefined) ||
        foldedTemplates.some(({ match }) => match(folded) !== undefined)
      );
    });
  };
}

/** A URI without variables is in the set of spellings already. */
function toTemplate(text: string): readonly ReturnType<typeof parseUriTemplate>[] {
  if (!text.includes("{")) return [];
  try {
    return [parseUriTemplate(text)];
  } catch (error) {
    if (error instanceof UriTemplateError) return [];
    throw error;
  }
}

type Open = (options: ConnectOptions) => Promise<Client>;

/** Opens clients whose lists are compared with the lock when they come, before they are known to the gateway. */
export function withPreparedLists(server: string, open: Open, pins: () => Pins | undefined): Open {
  return async (options) => {
    const client = await open(options);
    if (pins() === undefined) return client;
    const prepared: Pick<Client, "listTools" | "listPrompts" | "listResources" | "listResourceTemplates"> = {
      listTools: async (...given) => {
        const items = await client.listTools(...given);
        await pins()?.prepare(server, "tools", items);
        return items;
      },
      listPrompts: async () => {
        const items = await client.listPrompts();
        await pins()?.prepare(server, "prompts", items);
        return items;
      },
      listResources: async () => {
        const items = await client.listResources();
        await pins()?.prepare(server, "resources", items);
        return items;
      },
      listResourceTemplates: async () => {
        const items = await client.listResourceTemplates();
        await pins()?.prepare(server, "templates", items);
        return items;
      },
    };
    // Everything else is the client's own, its getters included.
    return Object.setPrototypeOf(prepared, client) as Client;
  };
}
