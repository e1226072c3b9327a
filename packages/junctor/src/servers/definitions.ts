import { type Approved, type LockPart, nameOf, type PinnedJson } from "../lock/index.ts";
import { secretMark } from "../log/index.ts";
import { listParts, type Upstream } from "../upstream/index.ts";
import { instructionsOf } from "./gateway-server.ts";

/** What a server lists, as a lock would have it. */
export interface ListedDefinitions {
  readonly server: string;
  /** Undefined when not everything could be listed. */
  readonly definitions: Approved | undefined;
  /** The names of things that cannot be approved: they say themselves what stands for a secret in a lock. */
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
