import { createHash } from "node:crypto";
import type { OwnerOf } from "../middleware/audit-log.ts";
import { createGlobs } from "../middleware/glob.ts";
import type { Catalog } from "../tools/compose/catalog.ts";
import type { Naming } from "../tools/compose/namespace.ts";
import { everything, type Policy, type View } from "../tools/compose/view.ts";
import type { Hearer } from "../tools/provider.ts";
import type { Authenticate } from "../transports/http/server/handler.ts";
import type { GatewayConfig } from "./config/config.ts";
import type { GatewayServer } from "./gateway-server.ts";
import { createServerNames, isNamedFor, toToolName } from "./server-names.ts";

/** Who may come in, and what they may see and use. */
export interface Access {
  /** The names of callers, by the hashes of their keys. */
  readonly callers: ReadonlyMap<string, string>;
  /** Tells a caller by its key; undefined when there are no keys, and everybody may come in. */
  readonly authenticate: Authenticate | undefined;
  viewFor(context: Hearer): View;
  /** Whose a tool is, also one that the caller may not use or the config takes away: for those who write down what was refused. */
  ownerOf: OwnerOf;
  /** Callers that came in by what the other access let in, and this one does not; undefined for those without a name. */
  revokedSince(earlier: Access): readonly (string | undefined)[];
}

/** What those may do who have no name though there are keys: whoever starts us or shares our machine may be trusted. */
export type Unnamed = "refused" | "trusted";

export interface AccessOptions {
  readonly config: GatewayConfig;
  readonly catalog: Catalog;
  readonly naming: Naming;
  readonly unnamed: Unnamed;
  readonly servers: () => readonly GatewayServer[];
}

/** The access a config gives. A caller whose key is gone may use nothing. */
export function createAccess({ config, catalog, naming, unnamed, servers }: AccessOptions): Access {
  const { keys } = config;
  const callers = new Map(keys.map(({ sha256, name }) => [sha256, name]));
  const general = createGlobs(orAll(config.allow), config.deny);
  const policies = new Map<string | undefined, Policy>(
    keys.map(({ name, allow, deny }) => {
      const own = createGlobs(orAll(allow), deny);
      return [name, (item: string) => general(item) && own(item)];
    }),
  );
  if (keys.length === 0 || unnamed === "trusted") policies.set(undefined, general);
  /** The server whose tool a rule of the config takes away that would have this name. */
  const withheldBy = (tool: string): ReturnType<OwnerOf> => {
    for (const each of servers()) {
      const { config: server } = each;
      const names = createServerNames(server, naming);
      const hidden = each
        .listedFor()
        .tools.find(
          ({ name }) => names.tool(name) === undefined && toToolName(server, name, naming) === tool,
        );
      if (hidden !== undefined) return { server: server.name, ownName: hidden.name };
    }
    return undefined;
  };
  /** The server that a name speaks of, though it lists no such tool or is disabled. */
  const namedOwner = (tool: string): ReturnType<OwnerOf> => {
    const all = [...config.servers, ...config.disabled];
    const named = all.find((server) => isNamedFor(server, tool, naming));
    return named === undefined ? undefined : { server: named.name };
  };
  return {
    callers,
    // A digest is looked up, never compared piece by piece, so how long it takes tells nothing of a key.
    authenticate:
      keys.length === 0 ? undefined : (header) => callers.get(digestOf(bearerOf(header("authorization")))),
    viewFor: (context) =>
      catalog.viewFor(context, policies.get(keys.length === 0 ? undefined : context.caller) ?? nothing),
    ownerOf: (tool, context) =>
      catalog.viewFor(context, everything).toolOwner(tool) ?? withheldBy(tool) ?? namedOwner(tool),
    revokedSince: ({ callers: before }) => {
      const gone = [...before].filter(([hash, name]) => callers.get(hash) !== name).map(([, name]) => name);
      // Without keys everybody came in.
      return before.size === 0 && callers.size > 0 ? [undefined] : gone;
    },
  };
}

const orAll = (allow: readonly string[]): readonly string[] | undefined =>
  allow.length === 0 ? undefined : allow;

const nothing: Policy = () => false;

function bearerOf(header: string | undefined): string {
  return /^Bearer +([^ ]+) *$/i.exec(header ?? "")?.[1] ?? "";
}

function digestOf(key: string): string {
  return key === "" ? "" : createHash("sha256").update(key).digest("hex");
}
