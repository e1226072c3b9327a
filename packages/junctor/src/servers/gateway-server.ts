import { anyone, type Member, type Naming, createPolledLists, type View } from "@junctor/core/compose";
import type { ListPart } from "@junctor/core/fit";
import {
  declaredExtension,
  type Extensions,
  extensionIds,
  newestModernRevision,
  type Tool,
  withMembers,
} from "@junctor/core/mcp";
import { createCallContext, type CallContext, type CallerInfo, type Provider } from "@junctor/core/provider";
import { createServerNames, withConnectName } from "../catalog/index.ts";
import { type ServerConfig, parseConfigValue } from "../config/index.ts";
import type { Pins } from "../lock/index.ts";
import type { Words } from "../log/index.ts";
import {
  type Health,
  type ConnectionStatus,
  type Listed,
  listParts,
  nothingListed,
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
    // Without a prefix, any name might have been its own.
    ...(server.askFirst === undefined ? {} : { askFirst: server.askFirst }),
    unavailable: () => (server.isListed || config.prefix === false ? undefined : server.unavailable()),
  };
}

const plainTools = new WeakMap<readonly Tool[], readonly Tool[]>();

/** Tools as they are listed: the gateway calls those of 2025-11-25 that need a task as one, so callers need not. */
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
 * The extensions that a gateway offers to a caller: those that it passes on whichever server is up, because a legacy caller
 * hears of them once, and those that the config opened for servers of which the caller may use something.
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

/** The config of a provider of this process of which the file says nothing: its names stay as they are. */
export function toLocalConfig(name: string): readonly ServerConfig[] {
  const config = {
    mcpServers: { [name]: { command: name } },
    junctor: { servers: { [name]: { prefix: false } } },
  };
  return parseConfigValue(config, { file: name, env: {} }).servers;
}

/** The health of a server without a connection that could fail. */
export const alwaysUp: Health = {
  kind: "up",
  since: 0,
  connectMs: 0,
  agreement: {
    mode: { kind: "modern", revision: newestModernRevision },
    serverInfo: undefined,
    capabilities: {},
    instructions: undefined,
  },
};

interface LocalServerOptions {
  readonly onListError: (name: string, error: unknown) => void;
  readonly onChanged: () => void;
}

/** A provider of this process: always up, called directly. */
export function createLocalServer(
  config: ServerConfig,
  provider: Provider,
  options: LocalServerOptions,
): GatewayServer {
  const { name } = config;
  const lists = createPolledLists({ name, provider, ...options });
  for (const part of listParts) void lists.beginListing(createCallContext(anyone), part);
  return {
    config,
    provider,
    health: alwaysUp,
    isListed: true,
    isSettled: true,
    listedFor: (caller = anyone) => ({
      ...lists.listsFor(caller),
      hints: lists.listsFor(caller).hints ?? { ttlMs: 0, cacheScope: "private" },
      problems: [],
      isConfirmed: true,
      // A tool that was added since may be called before it is listed.
      areToolsConfirmed: false,
      faults: [],
    }),
    beginListing: lists.beginListing,
    untilListed: (part, context) => lists.untilListed(context, part),
    unavailable: () => new Error(`${name} is always available`),
  };
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

/** Not in the middle of a character. */
function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return text.slice(0, Math.max(0, maxLength)).replace(/[\uD800-\uDBFF]$/, "");
}
