import type { Prompt, Resource, ResourceTemplate, Tool } from "../../mcp/types.ts";
import { withMembers } from "../../tools/definition.ts";
import type { ListFault } from "../../tools/fit/list-fault.ts";
import type { Naming } from "../../tools/namespace.ts";
import type { ServerConfig } from "../config/config.ts";
import type { Health } from "../upstream/health.ts";
import type { Listed } from "../upstream/list-keeper.ts";
import { claimFaults } from "./faults.ts";
import { type Claim, type Collision, merge, type Merged, type Owner } from "./merge.ts";
import { createToolNames } from "./names.ts";
import { isNamedFor, mayOwn, type NamesConfig, toPublicName } from "./public-name.ts";
import { createWithheld, type ListedSource } from "./withheld.ts";

/** A server as the catalog sees it. */
export interface Source {
  readonly config: ServerConfig;
  readonly health: Health;
  /** Whether its tools were ever listed. */
  readonly isListed: boolean;
  /** Whether everything it lists is known, as it was last listed. */
  readonly isSettled: boolean;
  /** What it lists for callers who can be asked for what `key` says; see `toRelayable`. */
  listedFor(key: string): Listed;
}

/** Everything there is, at one moment. */
export interface Snapshot {
  readonly tools: readonly Claim<Tool>[];
  readonly prompts: readonly Claim<Prompt>[];
  /** Of every server that has them: who may not use the first's may use another's. The owner's come first. */
  readonly resources: readonly Claim<Resource>[];
  readonly templates: readonly Claim<ResourceTemplate>[];
  readonly collisions: readonly Collision[];
  /** What was mended or left out, under the name it has or would have here. */
  readonly faults: readonly Claim<ListFault>[];
  /** Whose tool a rule of the config takes away that would have this name. */
  withheld(name: string): Owner | undefined;
}

/** The kinds of things in a catalog. */
type Kind = "tools" | "prompts" | "resources" | "templates";
interface Items {
  readonly tools: Tool;
  readonly prompts: Prompt;
  readonly resources: Resource;
  readonly templates: ResourceTemplate;
}

/** The catalog as callers of one kind see it. */
interface Edition {
  readonly owners: Map<Kind, Map<string, string>>;
  /** What was merged last, and from which lists. */
  readonly known: Map<Kind, { readonly parts: readonly unknown[]; readonly merged: Merged<unknown> }>;
  snapshot: Snapshot | undefined;
}

/** There are few kinds of clients; at the limit the oldest edition is made anew when it is needed. */
const maxEditions = 64;

/** The key of callers that can be asked nothing. Their edition is always there: the others follow it in who owns what. */
const general = "";

/**
 * What all servers offer, under names that do not collide. Made anew when something changed and somebody looks; what did
 * not change is the same array.
 */
export class Catalog {
  #naming: Naming;
  readonly #onCollision: (collision: Collision) => void;
  /** By the key of the callers it was made for: servers may show more to those who can be asked. */
  readonly #editions = new Map<string, Edition>();
  readonly #reported = new Set<string>();
  #sources: readonly Source[] = [];
  #isSettled = false;

  constructor(naming: Naming, onCollision: (collision: Collision) => void) {
    this.#naming = naming;
    this.#onCollision = onCollision;
  }

  get sources(): readonly Source[] {
    return this.#sources;
  }

  set sources(sources: readonly Source[]) {
    this.#sources = sources;
    this.outdated();
  }

  /** Changes how names are made; every name may be another then. */
  set naming(naming: Naming) {
    this.#naming = naming;
    for (const edition of this.#editions.values()) edition.known.clear();
    this.outdated();
  }

  /** Something about a source changed. */
  outdated(): void {
    for (const edition of this.#editions.values()) edition.snapshot = undefined;
  }

  /** Whether a server may turn out to have a tool or prompt that callers know by this name. */
  mayName(config: ServerConfig, name: string): boolean {
    return mayOwn(config, name, this.#naming);
  }

  /** Whether a name says by itself that it is a server's, whatever that server lists. */
  isNamedFor(config: NamesConfig, name: string): boolean {
    return isNamedFor(config, name, this.#naming);
  }

  /** From now on an owner keeps what it has, also when a server that comes first in the config turns up late. */
  settle(): void {
    this.#isSettled = true;
  }

  /** Everything there is, for callers of one kind. */
  snapshotFor(key: string): Snapshot {
    const edition = this.#editions.get(key) ?? this.#addEdition(key);
    edition.snapshot ??= this.#make(key, edition);
    return edition.snapshot;
  }

  #addEdition(key: string): Edition {
    if (this.#editions.size >= maxEditions) {
      const oldest = [...this.#editions.keys()].find((other) => other !== general);
      if (oldest !== undefined) this.#editions.delete(oldest);
    }
    const edition: Edition = { owners: new Map(), known: new Map(), snapshot: undefined };
    this.#editions.set(key, edition);
    return edition;
  }

  #make(key: string, edition: Edition): Snapshot {
    if (key !== general) this.snapshotFor(general);
    const sources = this.#sources.map((source) => ({ config: source.config, listed: source.listedFor(key) }));
    const tools = this.#merge(edition, "tools", sources, (source) => this.#toolsOf(source));
    const prompts = this.#merge(edition, "prompts", sources, ({ config, listed }) =>
      listed.prompts.map((item) => {
        const name = toPublicName(config, item.name, this.#naming);
        return { key: name, item: rename(item, name), server: config.name, ownName: item.name };
      }),
    );
    const resources = this.#merge(edition, "resources", sources, ({ config, listed }) =>
      listed.resources.map((item) => ({ key: item.uri, item, server: config.name, ownName: item.uri })),
    );
    const templates = this.#merge(edition, "templates", sources, ({ config, listed }) =>
      listed.templates.map((item) => ({
        key: item.uriTemplate,
        item,
        server: config.name,
        ownName: item.uriTemplate,
      })),
    );
    // Two servers may well offer the same resource; a name is another matter.
    const collisions = [...tools.collisions, ...prompts.collisions];
    this.#report(collisions);
    return {
      tools: tools.claims,
      prompts: prompts.claims,
      resources: resources.contested,
      templates: templates.contested,
      collisions,
      faults: sources.flatMap(({ config, listed }) => claimFaults(config, listed.faults, this.#naming)),
      withheld: createWithheld(sources, this.#naming),
    };
  }

  #merge<K extends Kind>(
    edition: Edition,
    kind: K,
    sources: readonly ListedSource[],
    claimsOf: (source: ListedSource) => readonly Claim<Items[K]>[],
  ): Merged<Items[K]> {
    const parts = sources.flatMap(({ config, listed }) => [config, listed[kind]]);
    const known = edition.known.get(kind);
    const isSame =
      parts.length === known?.parts.length && parts.every((part, index) => part === known.parts[index]);
    if (known !== undefined && isSame) return known.merged as Merged<Items[K]>;
    const before = this.#isSettled ? edition.owners.get(kind) : undefined;
    const common = this.#editions.get(general);
    // A name must not mean one server to some callers and another to others.
    const agreed = common === edition ? undefined : common?.owners.get(kind);
    const owners = new Map([...(before ?? []), ...(agreed ?? [])]);
    const merged = merge(sources.flatMap(claimsOf), owners);
    edition.owners.set(kind, owners);
    edition.known.set(kind, { parts, merged });
    return merged;
  }

  #toolsOf({ config, listed }: ListedSource): readonly Claim<Tool>[] {
    const nameOf = createToolNames(config, this.#naming);
    return listed.tools.flatMap((tool) => {
      const named = nameOf(tool.name);
      if (named === undefined) return [];
      const { key, rule } = named;
      const item = rename(tool, key, rule?.description);
      return [{ key, item, server: config.name, ownName: tool.name }];
    });
  }

  #report(collisions: readonly Collision[]): void {
    for (const collision of collisions) {
      const text = JSON.stringify(collision);
      if (this.#reported.has(text)) continue;
      if (this.#reported.size > 1000) this.#reported.clear();
      this.#reported.add(text);
      this.#onCollision(collision);
    }
  }
}

function rename<T extends { readonly name: string; readonly description?: string }>(
  item: T,
  name: string,
  description?: string,
): T {
  const isSame = item.name === name && (description === undefined || item.description === description);
  if (isSame) return item;
  return withMembers(item, { name, ...(description === undefined ? {} : { description }) } as Partial<T>);
}
