import {
  type MemberNames,
  type Naming,
  prefixOf,
  qualify,
  type ReservedFor,
  unqualified,
  type UriNames,
  type View,
} from "@junctor/core/compose";
import { originKey, type Part, type Tool, withMembers } from "@junctor/core/mcp";
import { type CallerInfo, type Provider, withNames } from "@junctor/core/provider";
import { createGlobs } from "@junctor/server/internal";
import type { ServerConfig, ToolRule } from "../config/index.ts";
import { readResultName } from "../context/index.ts";

/** The part of a server's config that says how its things are named. */
type NamesConfig = Pick<ServerConfig, "prefix" | "tools">;

/** The name that callers know a tool or prompt by when no rule of the config renames it. */
export function toPublicName(
  { prefix }: Pick<NamesConfig, "prefix">,
  ownName: string,
  naming: Naming,
): string {
  return prefix === false ? unqualified(ownName, naming) : qualify(prefix, ownName, naming);
}

/** The name callers know a server's tool by, or would know it by if no rule hid it. */
export function toToolName(config: NamesConfig, ownName: string, naming: Naming): string {
  return ruleOf(config, ownName)?.name ?? toPublicName(config, ownName, naming);
}

/** Whether a name itself says that it is a server's: by the prefix, or because a rule of the config gives it to a tool. */
export function isNamedFor({ prefix, tools }: NamesConfig, name: string, naming: Naming): boolean {
  if (prefix !== false && name.startsWith(prefixOf(prefix, naming))) return true;
  return Object.values(tools).some((rule) => rule.name === name);
}

/** The names of a server's things, as its config says. */
export function createServerNames(config: ServerConfig, naming: Naming): MemberNames {
  const { allow, deny, onlyTools, withoutTools } = config;
  const fits = createGlobs(allow.length === 0 ? undefined : allow, deny);
  const isAllowed = (ownName: string, name: string): boolean =>
    (fits(ownName, name) || fits(name, ownName)) &&
    onlyTools?.includes(ownName) !== false &&
    !withoutTools.includes(ownName);
  return {
    tool: (ownName) => {
      const rule = ruleOf(config, ownName);
      const name = toToolName(config, ownName, naming);
      if (rule?.hide === true || !isAllowed(ownName, name)) return undefined;
      return { name, description: rule?.description };
    },
    prompt: (ownName) => toPublicName(config, ownName, naming),
    mayOwn: (name) => config.prefix === false || isNamedFor(config, name, naming),
  };
}

/** What the gateway itself calls the tool that connects the account of a caller. Servers cannot choose what callers know it by. */
export const connectTool = "junctor:connect";

/** The name callers have for the tool that connects their account at a server. */
export function toConnectName(
  { name, prefix }: Pick<ServerConfig, "name" | "prefix">,
  naming: Naming,
): string {
  return qualify(prefix === false ? name : prefix, "connect", naming);
}

/** Names of a server with that tool among them, whatever the rules about the server's own tools say. */
export function withConnectName(names: MemberNames, config: ServerConfig, naming: Naming): MemberNames {
  const connect = { name: toConnectName(config, naming) };
  return { ...names, tool: (ownName) => (ownName === connectTool ? connect : names.tool(ownName)) };
}

/**
 * Keeps the names under a server's prefix for that server, also while it is down or disabled: no other server can pass for it. The
 * config itself may give such a name to another server's tool.
 */
export function createReservations(
  servers: readonly Pick<ServerConfig, "name" | "prefix" | "tools">[],
  naming: Naming,
): ReservedFor {
  const byName = new Map(servers.map((server) => [server.name, server]));
  const prefixes = servers.flatMap(({ name, prefix }) =>
    prefix === false ? [] : [{ name, prefix: prefixOf(prefix, naming) }],
  );
  return ({ key, server, ownName }) => {
    const owner = prefixes.find(({ prefix }) => key.startsWith(prefix))?.name;
    if (owner === undefined || owner === server) return undefined;
    const claimant = byName.get(server);
    return claimant !== undefined && ruleOf(claimant, ownName)?.name === key ? undefined : owner;
  };
}

function ruleOf({ tools }: Pick<NamesConfig, "tools">, ownName: string): ToolRule | undefined {
  return Object.hasOwn(tools, ownName) ? tools[ownName] : undefined;
}

/**
 * The things of one server under the names and URIs that the server itself uses. It wraps the middleware: rules, limits and records
 * see the names of the gateway.
 */
export function withOwnNames(
  inner: Provider,
  viewFor: (caller: CallerInfo) => View,
  uris: () => UriNames | undefined,
): Provider {
  return withNames(inner, {
    parts: ["tools", "prompts", "resources", "templates", "skills"],
    toInner: (part, own, caller) => {
      const claims = claimsOf(part, viewFor(caller));
      if (claims === undefined) return uris()?.toPublic(own) ?? own;
      for (const [name, claim] of claims) if (claim.ownName === own) return name;
      // Not the server's own: the tool that reads on in a result that was cut.
      return part === "tools" && own === readResultName ? own : undefined;
    },
    toOuter: (part, name, caller) => {
      if (part === "templates") return name;
      const claims = claimsOf(part, viewFor(caller));
      return claims === undefined ? (uris()?.toOwn(name) ?? name) : (claims.get(name)?.ownName ?? name);
    },
    finish: (item) => withoutOrigin(item),
  });
}

/** The things of a list by their names in the gateway; undefined for a list of URIs. */
function claimsOf(
  part: Part,
  { toolClaims, promptClaims }: View,
): View["toolClaims" | "promptClaims"] | undefined {
  if (part === "tools") return toolClaims;
  return part === "prompts" ? promptClaims : undefined;
}

/** Removes the mark of a tool's server, which is of no use when there is one server only. */
function withoutOrigin<T extends object>(item: T): T {
  const { _meta } = item as Partial<Tool>;
  if (_meta === undefined || !Object.hasOwn(_meta, originKey)) return item;
  const { [originKey]: _, ...meta } = _meta;
  return withMembers(item, { _meta: Object.keys(meta).length === 0 ? undefined : meta } as object);
}
