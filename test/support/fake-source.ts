import { anyone, Catalog } from "../../packages/core/src/compose/catalog.ts";
import type { Collision } from "../../packages/core/src/compose/claims.ts";
import { defaultNaming } from "../../packages/core/src/compose/namespace.ts";
import type { Tool } from "../../packages/core/src/mcp/types.ts";
import type { CallerInfo } from "../../packages/core/src/provider/provider.ts";
import type { ServerConfig } from "../../packages/junctor/src/config/config.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { type GatewayServer, toMember } from "../../packages/junctor/src/servers/gateway-server.ts";
import type { Health } from "../../packages/junctor/src/upstream/connection.ts";
import type { Listed } from "../../packages/junctor/src/upstream/list-cache.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { legacyAgreement } from "./fake-client.ts";

export const up: Health = { kind: "up", since: 0, agreement: legacyAgreement, connectMs: 12 };

export const toTools = (...names: readonly string[]): readonly Tool[] =>
  names.map((name) => ({ name, inputSchema: { type: "object" } }));

export function toListed(listed: Partial<Listed> = {}): Listed {
  return {
    tools: [],
    resources: [],
    templates: [],
    prompts: [],
    hints: { ttlMs: 0, cacheScope: "private" },
    problems: [],
    isConfirmed: true,
    areToolsConfirmed: true,
    faults: [],
    ...listed,
  };
}

/** The config of a server with everything left as it is. */
export function toServerConfig(name: string, config: Partial<ServerConfig> = {}): ServerConfig {
  const [parsed] = parseConfigValue(
    { mcpServers: { [name]: { command: name } } },
    { file: name, env: {} },
  ).servers;
  if (parsed === undefined) throw new Error(`no server ${name}`);
  return { ...parsed, prefix: name, ...config };
}

/** A server of a gateway; its lists and health may be changed. */
export interface FakeSource extends GatewayServer {
  health: Health;
  isListed: boolean;
  isSettled: boolean;
  listed: Listed;
  /** The lists of callers by name that see others than the rest. */
  readonly special: Map<string, Listed>;
}

export function createSource(
  name: string,
  listed: Partial<Listed> = {},
  config: Partial<ServerConfig> = {},
): FakeSource {
  const source: FakeSource = {
    config: toServerConfig(name, config),
    provider: createRegistry(),
    health: up,
    isListed: true,
    isSettled: true,
    listed: toListed(listed),
    special: new Map(),
    listedFor: (caller) => source.special.get(caller?.caller ?? "") ?? source.listed,
    beginListing: () => undefined,
    untilListed: () => undefined,
    unavailable: () => new Error(`${name} is not available`),
  };
  return source;
}

/** A caller by name, or one without. */
export const callerNamed = (caller?: string): CallerInfo => ({ ...anyone, caller });

/** A catalog of servers in which each caller is of its own kind. */
export function createCatalogOf(
  sources: readonly GatewayServer[],
  onCollision: (collision: Collision) => void = () => {},
): Catalog {
  const catalog = new Catalog({ kindOf: ({ caller }) => caller, separator: () => "__", onCollision });
  setSources(catalog, sources);
  return catalog;
}

export function setSources(catalog: Catalog, sources: readonly GatewayServer[]): void {
  catalog.members = sources.map((source) => toMember(source, defaultNaming));
}
