import { createHash } from "node:crypto";
import { toRelayable } from "../mcp/capabilities.ts";
import type { OwnerOf } from "../middleware/audit-log.ts";
import { createGlobs } from "../middleware/glob.ts";
import type { Hearer } from "../tools/provider.ts";
import type { Authenticate } from "../transports/http/server/handler.ts";
import type { Catalog, Snapshot } from "./catalog/catalog.ts";
import { createView, type Policy, type View } from "./catalog/view.ts";
import type { GatewayConfig } from "./config/config.ts";

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

/** The access a config gives. A caller whose key is gone may use nothing. */
export function createAccess(config: GatewayConfig, catalog: Catalog, unnamed: Unnamed): Access {
  const { keys, separator } = config;
  const callers = new Map(keys.map(({ sha256, name }) => [sha256, name]));
  const general = createGlobs(orAll(config.allow), config.deny);
  const policies = new Map<string | undefined, Policy>(
    keys.map(({ name, allow, deny }) => {
      const own = createGlobs(orAll(allow), deny);
      return [name, (item: string) => general(item) && own(item)];
    }),
  );
  if (keys.length === 0 || unnamed === "trusted") policies.set(undefined, general);
  const views = new WeakMap<Snapshot, Map<Policy, View>>();
  const snapshotFor = ({ capabilities, revision }: Hearer): Snapshot =>
    catalog.snapshotFor(toRelayable(capabilities, revision).key);
  const viewUnder = (policy: Policy, context: Hearer): View => {
    const snapshot = snapshotFor(context);
    let own = views.get(snapshot);
    if (own === undefined) views.set(snapshot, (own = new Map<Policy, View>()));
    let view = own.get(policy);
    if (view === undefined) own.set(policy, (view = createView(snapshot, policy, separator)));
    return view;
  };
  /** The server that a name speaks of, though it lists no such tool or is disabled. */
  const namedOwner = (tool: string): ReturnType<OwnerOf> => {
    const named = [...config.servers, ...config.disabled].find((server) => catalog.isNamedFor(server, tool));
    return named === undefined ? undefined : { server: named.name };
  };
  return {
    callers,
    // A digest is looked up, never compared piece by piece, so how long it takes tells nothing of a key.
    authenticate:
      keys.length === 0 ? undefined : (header) => callers.get(digestOf(bearerOf(header("authorization")))),
    viewFor: (context) =>
      viewUnder(policies.get(keys.length === 0 ? undefined : context.caller) ?? nothing, context),
    ownerOf: (tool, context) =>
      viewUnder(everything, context).toolOwner(tool) ??
      snapshotFor(context).withheld(tool) ??
      namedOwner(tool),
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
const everything: Policy = () => true;

function bearerOf(header: string | undefined): string {
  return /^Bearer +([^ ]+) *$/i.exec(header ?? "")?.[1] ?? "";
}

function digestOf(key: string): string {
  return key === "" ? "" : createHash("sha256").update(key).digest("hex");
}
