/** Whose something is, and what its owner calls it. */
export interface Owner {
  readonly server: string;
  readonly ownName: string;
  /** What callers know it by, if that is known: a name or a URI. */
  readonly key?: string;
  /** Set where results of the owner may have other URIs than callers know. */
  readonly uris?: UriNames | undefined;
}

/** The URIs that callers know the resources of one server by. Most are the server's own. */
export interface UriNames {
  /** The URI for callers of one of the server's own. */
  toPublic(own: string): string;
  /** The server's own URI for one that callers use; undefined where that does not say whose it is. */
  toOwn(uri: string): string | undefined;
  /** Whether URIs in results may be others for callers. */
  readonly differs: boolean;
  /** The server's own URIs of the views that its tools or lists name, by the URIs for callers. */
  readonly views: ReadonlyMap<string, string>;
}

/** One server's thing, and the name that callers know it by. */
export interface Claim<T> extends Owner {
  /** What callers know it by: a name or a URI. */
  readonly key: string;
  readonly item: T;
  /** As its server lists it; the same as `item` when left out. */
  readonly ownItem?: T;
}

/** Something that several servers claim under one name. */
export interface Collision {
  readonly key: string;
  readonly owner: string;
  /** Those that claim it too, the owner itself if it does so twice; theirs cannot be reached. */
  readonly others: readonly string[];
  /** The name begins with the owner's prefix, so it is kept for the owner, also if the owner does not offer it. */
  readonly isReserved?: true;
}

/** The server that a claimed name is kept for, if that is another than the one that claims it. */
export type ReservedFor = (claim: Claim<unknown>) => string | undefined;

/** A collision in words, with what to do about it. */
export function describeCollision({ key, owner, others, isReserved }: Collision): string {
  return isReserved === true
    ? `${key} of ${others.join(", ")} begins with the prefix of ${owner} and is left out: rename it, or give its server a prefix`
    : `${key} is offered by several servers (${[owner, ...others].join(", ")}); ${owner} has it: rename or hide the others, or give them a prefix`;
}

export interface Merged<T> {
  readonly claims: readonly Claim<T>[];
  /** The same, each followed by the claims it prevailed over. */
  readonly contested: readonly Claim<T>[];
  readonly collisions: readonly Collision[];
}

/**
 * Settles who owns what. Of several claims the first server in the config has it, unless another had it before: what a name
 * means does not change while the gateway runs because a server came up late. `owners` remembers, and is updated. A claim of a
 * name that is kept for another server is left out, and reported as a collision.
 */
export function merge<T>(
  claims: readonly Claim<T>[],
  owners: Map<string, string>,
  reservedFor: ReservedFor = () => undefined,
): Merged<T> {
  const byKey = new Map<string, Claim<T>[]>();
  const collisions: Collision[] = [];
  for (const claim of claims) {
    const owner = reservedFor(claim);
    if (owner !== undefined) {
      collisions.push({ key: claim.key, owner, others: [claim.server], isReserved: true });
      continue;
    }
    const rivals = byKey.get(claim.key);
    if (rivals === undefined) byKey.set(claim.key, [claim]);
    else if (!rivals.some((rival) => isSame(rival, claim))) rivals.push(claim);
  }
  const settled: Claim<T>[] = [];
  const contested: Claim<T>[] = [];
  for (const [key, rivals] of byKey) {
    const before = owners.get(key);
    const winner = rivals.find(({ server }) => server === before) ?? rivals[0];
    if (winner === undefined) continue;
    settled.push(winner);
    contested.push(winner);
    if (rivals.length === 1) continue;
    const others = rivals.filter((rival) => rival !== winner);
    contested.push(...others);
    collisions.push({ key, owner: winner.server, others: others.map(({ server }) => server) });
  }
  owners.clear();
  for (const { key, server } of settled) owners.set(key, server);
  return { claims: settled, contested, collisions };
}

/** A server that lists a thing twice claims it once. */
function isSame(one: Claim<unknown>, other: Claim<unknown>): boolean {
  return one.server === other.server && one.ownName === other.ownName;
}

/** Tells of each collision once. */
export function createReport(
  onCollision: ((collision: Collision) => void) | undefined,
): (collisions: readonly Collision[]) => void {
  const reported = new Set<string>();
  return (collisions) => {
    for (const collision of collisions) {
      const text = JSON.stringify(collision);
      if (reported.has(text)) continue;
      if (reported.size > 1000) reported.clear();
      reported.add(text);
      onCollision?.(collision);
    }
  };
}
