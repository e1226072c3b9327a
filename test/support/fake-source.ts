import type { Source } from "../../src/gateway/catalog/catalog.ts";
import type { ServerConfig } from "../../src/gateway/config/config.ts";
import { parseConfigValue } from "../../src/gateway/config/parse-config.ts";
import type { Health } from "../../src/gateway/upstream/health.ts";
import type { Listed } from "../../src/gateway/upstream/list-keeper.ts";
import type { Tool } from "../../src/mcp/types.ts";
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

/** A server as the catalog sees it; its lists and health may be changed. */
export interface FakeSource extends Source {
  health: Health;
  isListed: boolean;
  isSettled: boolean;
  listed: Listed;
  /** What it lists for callers of another kind. */
  readonly special: Map<string, Listed>;
}

export function createSource(
  name: string,
  listed: Partial<Listed> = {},
  config: Partial<ServerConfig> = {},
): FakeSource {
  const source: FakeSource = {
    config: toServerConfig(name, config),
    health: up,
    isListed: true,
    isSettled: true,
    listed: toListed(listed),
    special: new Map(),
    listedFor: (key) => source.special.get(key) ?? source.listed,
  };
  return source;
}
