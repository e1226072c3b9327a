import type { Clock } from "@junctor/core/async";
import { RawJson } from "@junctor/core/json";
import {
  declaredExtension,
  extensionIds,
  type Group,
  type GroupContents,
  type GroupedPart,
  isGroupName,
} from "@junctor/core/mcp";
import type { Agreement } from "./conversation.ts";
import { type Fetched, KeptList, type PlainRequest, elementsOf, walkPages } from "./lists.ts";

interface GroupsOptions {
  readonly request: PlainRequest;
  readonly agreement: () => Promise<Agreement>;
  /** Whether the client declares the extension. If so, what is in groups is missing from the lists, and is fetched from the groups. */
  readonly isDeclared: boolean;
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
}

/** The groups of a server that can be reached, and the definitions in them. */
export interface ServerGroups {
  readonly kept: KeptList<Group>;
  /** The definitions that are in groups and therefore missing from a list. */
  definitionsOf(member: string): Promise<readonly RawJson[]>;
}

/** The most groups of one server that are fetched; the draft asks servers to keep them few. */
const maxGroups = 256;
/** The most definitions of one kind in a group. */
const maxInGroup = 10_000;
const limits = { maxPages: 100, maxItems: maxGroups, maxBytes: 8 * 1024 * 1024 };
const noGroups: Fetched<Group> = {
  items: [],
  faults: [],
  ttlMs: Number.POSITIVE_INFINITY,
  hints: { ttlMs: Number.POSITIVE_INFINITY, cacheScope: "public" },
};

/** Fetches the groups of a server with everything in them, so that callers that do not know groups lose nothing. */
export function createGroups({
  request,
  agreement,
  isDeclared,
  clock,
  onWarning,
}: GroupsOptions): ServerGroups {
  let definitions: Definitions = new Map();

  const fetchAll = async (): Promise<Fetched<Group>> => {
    const { items: listed, hints } = await walkPages(
      (params) => request("groups/list", params),
      "groups",
      limits,
    );
    const found: Definitions = new Map();
    const groups = new Map<string, Group>();
    const left = listed.map((raw) => raw.value);
    // Groups may be nested, and a hostile server may nest them in circles: each is fetched once.
    for (let next = left.shift(); next !== undefined && groups.size < maxGroups; next = left.shift()) {
      const { name, description } = next as { readonly [member: string]: unknown };
      if (typeof name !== "string" || !isGroupName(name) || typeof description !== "string") {
        onWarning(`Left out of groups/list: ${JSON.stringify(name)}: it has no sound name and description`);
        continue;
      }
      if (groups.has(name)) continue;
      const result = await request("groups/get", RawJson.fromValue({ name }));
      const instructions = result.at("instructions")?.value;
      const contents = result.at("contents");
      groups.set(name, {
        ...(next as Group),
        ...(typeof instructions === "string" ? { instructions } : {}),
        ...(contents === undefined ? {} : { contents: readContents(contents, found) }),
      });
      if (contents !== undefined)
        for (const nested of elementsOf(contents, "groups", maxGroups)) left.push(nested.value);
    }
    definitions = found;
    return { items: [...groups.values()], faults: [], ttlMs: hints.ttlMs, hints };
  };

  const kept = new KeptList<Group>(async () => {
    const { capabilities, mode } = await agreement();
    const { extensions } = capabilities;
    const offered = extensions && declaredExtension({ extensions }, extensionIds.groups);
    if (!isDeclared || mode.kind !== "modern" || offered === undefined) return noGroups;
    return fetchAll();
  }, clock);

  return {
    kept,
    definitionsOf: async (member) => {
      if (!isDeclared) return [];
      await kept.get();
      return [...(definitions.get(member)?.values() ?? [])];
    },
  };
}

/** By list and name. */
type Definitions = Map<string, Map<string, RawJson>>;

const keys: { readonly [P in GroupedPart]: string } = {
  tools: "name",
  prompts: "name",
  resources: "uri",
  groups: "name",
};

/** The names of what is in a group. Adds the definitions to `found`, once each. */
function readContents(contents: RawJson, found: Definitions): GroupContents {
  const parts = (Object.keys(keys) as GroupedPart[]).map((part) => {
    const known = found.get(part) ?? new Map<string, RawJson>();
    found.set(part, known);
    const names = elementsOf(contents, part, maxInGroup).flatMap((definition) => {
      const name = definition.kind === "object" ? definition.at(keys[part])?.value : undefined;
      if (typeof name !== "string") return [];
      if (!known.has(name)) known.set(name, definition);
      return [name];
    });
    return [part, names] as const;
  });
  return Object.fromEntries(parts.filter(([, names]) => names.length > 0));
}
