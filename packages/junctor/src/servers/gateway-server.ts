import type { Member, Naming, View } from "@junctor/core/compose";
import type { ListPart } from "@junctor/core/fit";
import { declaredExtension, type Extensions, extensionIds, type Tool, withMembers } from "@junctor/core/mcp";
import type { CallContext, CallerInfo, Provider } from "@junctor/core/provider";
import { createServerNames, withConnectName } from "../catalog/index.ts";
import type { ServerConfig } from "../config/index.ts";
import { type Approved, type LockPart, nameOf, type PinnedJson, type Pins } from "../lock/index.ts";
import { secretMark, type Words } from "../log/index.ts";
import {
  type ConnectionStatus,
  type Health,
  type Listed,
  listParts,
  nothingListed,
  type Upstream,
} from "../upstream/index.ts";

/** A server of the gateway: an upstream, or a provider of this process. */
export interface GatewayServer extends Pick<Member, "beginListing"> {
  readonly config: ServerConfig;
  readonly provider: Provider;
  readonly health: Health;
  /** Whether its tools were ever listed. */
  readonly isListed: boolean;
  /** Whether everything it lists is known, as it was last listed. */
  readonly isSettled: boolean;
  /** Everything it lists for a caller, as far as it is known; without a caller, for everyone. */
  listedFor(caller?: CallerInfo): Listed;
  /** A caller names something that may be in one of its lists; see {@link Member.untilListed}. */
  untilListed(part: ListPart, context: CallContext): Promise<unknown> | undefined;
  /** Why a call that may have been for it was not sent, while nothing is known of its lists. */
  unavailable(): Error;
  /** Tools of the gateway itself, in place of those of a server that lists nothing to a caller; the same array each time. */
  standInFor?(caller: CallerInfo): readonly Tool[] | undefined;
  /** Its processes, or its conversations over HTTP, each with its reason. */
  readonly connections?: readonly ConnectionStatus[];
  /** What its process wrote besides messages. */
  readonly words?: Words;
  /** See {@link Member.askFirst}. */
  readonly askFirst?: Member["askFirst"];
}

/** A server as the composition of all servers sees it: with `pins`, only things that were approved. */
export function toMember(server: GatewayServer, naming: Naming, pins?: Pins): Member {
  const { config } = server;
  const names = createServerNames(config, naming);
  return {
    name: config.name,
    provider: server.provider,
    names: server.standInFor === undefined ? names : withConnectName(names, config, naming),
    get isListed() {
      return server.isListed;
    },
    listsFor: (caller) => {
      const standIn = server.standInFor?.(caller);
      if (standIn !== undefined) return { ...nothingListed, tools: standIn };
      const listed = server.listedFor(caller);
      const admitted = pins === undefined ? listed : pins.admit(config.name, listed);
      const tools = withoutTaskSupport(admitted.tools);
      return tools === admitted.tools ? admitted : { ...admitted, tools };
    },
    beginListing: (context, part) => server.beginListing(context, part),
    untilListed: (context, part) =>
      server.listedFor().areToolsConfirmed ? undefined : server.untilListed(part, context),
    ...(server.askFirst === undefined ? {} : { askFirst: server.askFirst }),
    // Without a prefix, any name might have been its own.
    unavailable: () => (server.isListed || config.prefix === false ? undefined : server.unavailable()),
  };
}

const plainTools = new WeakMap<readonly Tool[], readonly Tool[]>();

/** Tools as they are listed: the gateway itself runs those of 2025-11-25 that need a task as tasks, so callers need not. */
function withoutTaskSupport(tools: readonly Tool[]): readonly Tool[] {
  let plain = plainTools.get(tools);
  if (plain === undefined) {
    const isAny = tools.some((tool) => "execution" in tool);
    const strip = (tool: Tool): Tool =>
      "execution" in tool ? withMembers(tool, { execution: undefined }) : tool;
    plainTools.set(tools, (plain = isAny ? Object.freeze(tools.map(strip)) : tools));
  }
  return plain;
}

/**
 * The extensions that a gateway offers to a caller: those that it passes on whichever server is up, because a legacy caller learns of them
 * only once, and those that the config opened for servers of which the caller may use something.
 */
export function offeredExtensions(servers: readonly GatewayServer[], view: View): Extensions {
  const offered: { [id: string]: object } = { [extensionIds.ui]: {} };
  for (const { config, health } of servers) {
    if (!view.uses(config.name)) continue;
    const declared = health.kind === "up" ? health.agreement.capabilities : {};
    for (const id of Object.keys(config.extensions)) offered[id] ??= declaredExtension(declared, id) ?? {};
  }
  return offered;
}

/** Longest text made of all servers' instructions: it goes into every conversation with a model. */
const maxInstructions = 16 * 1024;

/** What a server that is up says about how to use it. */
export function instructionsOf({ health }: Pick<GatewayServer, "health">): string | undefined {
  const text = health.kind === "up" ? health.agreement.instructions?.trim() : undefined;
  return text === "" ? undefined : text;
}

/** The instructions of servers, each under its name, as far as `pins` admit them; undefined when there are none. */
export function joinInstructions(
  upstreams: Iterable<Pick<GatewayServer, "config" | "health">>,
  pins?: Pins,
): string | undefined {
  const parts = Array.from(upstreams, (upstream) => {
    const { name } = upstream.config;
    const text = instructionsOf(upstream);
    const isAdmitted = text !== undefined && pins?.admitsInstructions(name, text) !== false;
    return isAdmitted ? `# ${name}\n${text}` : "";
  }).filter((part) => part !== "");
  if (parts.length === 0) return undefined;
  const lengths = parts.map(({ length }) => length + separator.length);
  const share = fairLength(lengths, maxInstructions) - separator.length;
  return cut(parts.map((part) => cut(part, share)).join(separator), maxInstructions);
}

const separator = "\n\n";

/** The length that each of several texts may have, so that all together fit and short ones are not cut for a long one. */
function fairLength(lengths: readonly number[], maxLength: number): number {
  let left = maxLength;
  for (const [index, length] of lengths.toSorted((one, other) => one - other).entries()) {
    const share = Math.floor(left / (lengths.length - index));
    if (length > share) return share;
    left -= length;
  }
  return maxLength;
}

/** Does not cut in the middle of a character. */
function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return text.slice(0, Math.max(0, maxLength)).replace(/[\uD800-\uDBFF]$/, "");
}

/** What a server lists, as a lock would have it. */
export interface ListedDefinitions {
  readonly server: string;
  /** Undefined when not everything could be listed. */
  readonly definitions: Approved | undefined;
  /** The names of things that cannot be approved: they contain the mark that stands for a secret in a lock. */
  readonly marked: readonly string[];
}

/** The definitions of servers that run, as all their connections list them. */
export function readDefinitions(
  upstreams: Iterable<Upstream>,
  toJson: PinnedJson,
): readonly ListedDefinitions[] {
  return Array.from(upstreams, (upstream) => {
    const listed = upstream.listedFor();
    const isWhole = upstream.health.kind === "up" && listed.isConfirmed && listed.problems.length === 0;
    const marked: string[] = [];
    const definitions = isWhole ? toDefinitions(upstream, toJson, marked) : undefined;
    return { server: upstream.name, definitions, marked };
  });
}

function toDefinitions(upstream: Upstream, toJson: PinnedJson, marked: string[]): Approved {
  const texts = new Map<LockPart, Map<string, Set<string>>>();
  const add = (part: LockPart, name: string, item: unknown): void => {
    if (JSON.stringify(item).includes(secretMark)) return void marked.push(name || part);
    const named = texts.get(part) ?? new Map<string, Set<string>>();
    texts.set(part, named.set(name, (named.get(name) ?? new Set()).add(toJson(part, item))));
  };
  const instructions = instructionsOf(upstream);
  if (instructions !== undefined) add("instructions", "", instructions);
  for (const { lists } of upstream.pool.all)
    for (const part of listParts) for (const item of lists.listed[part]) add(part, nameOf(part, item), item);
  const toThings = (named: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyMap<string, unknown> =>
    new Map(Array.from(named, ([name, variants]) => [name, toThing([...variants])]));
  return new Map(Array.from(texts, ([part, named]) => [part, toThings(named)]));
}

/** A server may list a thing in several forms, by the era of its caller: these are an array. */
function toThing(variants: readonly string[]): unknown {
  const values = variants.toSorted().map((text): unknown => JSON.parse(text));
  return values.length === 1 ? values[0] : values;
}
