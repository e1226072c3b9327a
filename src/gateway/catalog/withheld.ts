import type { Naming } from "../../tools/namespace.ts";
import type { ServerConfig } from "../config/config.ts";
import type { Listed } from "../upstream/list-keeper.ts";
import type { Owner } from "./merge.ts";
import { createToolNames, nameTool } from "./names.ts";

/** A server, and what it lists for the callers in question. */
export interface ListedSource {
  readonly config: ServerConfig;
  readonly listed: Listed;
}

/**
 * Finds the tool that callers would know by a name if no rule of the config took it away. For those who write down what was
 * refused; the names are made when the first of them asks.
 */
export function createWithheld(
  sources: readonly ListedSource[],
  naming: Naming,
): (name: string) => Owner | undefined {
  let owners: ReadonlyMap<string, Owner> | undefined;
  return (name) => {
    owners ??= findWithheld(sources, naming);
    return owners.get(name);
  };
}

function findWithheld(sources: readonly ListedSource[], naming: Naming): ReadonlyMap<string, Owner> {
  const owners = new Map<string, Owner>();
  for (const { config, listed } of sources) {
    const nameOf = createToolNames(config, naming);
    for (const { name: ownName } of listed.tools) {
      if (nameOf(ownName) !== undefined) continue;
      const { key } = nameTool(config, ownName, naming);
      if (!owners.has(key)) owners.set(key, { server: config.name, ownName });
    }
  }
  return owners;
}
