import type { Replica, TrunkAddress } from "./membership.ts";

/**
 * The version of the protocol between replicas: facts in the store, and the trunk. A change that a replica of the version before
 * would misunderstand adds one. Replicas whose versions differ by one work together; further members of facts are ignored.
 */
const language = 1;

/** The other replicas, as they were at the last renewal. */
interface KnownReplicas {
  readonly all: readonly Replica[];
  get(id: string): Replica | undefined;
  /** Takes the facts of all replicas that are registered, this one included. */
  learn(registered: ReadonlyMap<string, string>): void;
}

export function createKnownReplicas(ownId: string, onWarning: (text: string) => void): KnownReplicas {
  let known: ReadonlyMap<string, Replica> = new Map();
  /** Those that cannot be used: a warning each. */
  let unusable: ReadonlySet<string> = new Set();
  return {
    get all() {
      return [...known.values()];
    },
    get: (id) => known.get(id),
    learn: (registered) => {
      const others = [...registered].filter(([id]) => id !== ownId);
      const parsed = others.map(([id, facts]) => ({ id, replica: parseFacts(id, facts) }));
      const usable = parsed.flatMap(({ id, replica }): [string, Replica][] => {
        if (!("unusable" in replica)) return [[id, replica]];
        if (!unusable.has(id)) onWarning(`replica ${id} cannot be used: ${replica.unusable}`);
        return [];
      });
      known = new Map(usable);
      unusable = new Set(parsed.map(({ id }) => id).filter((id) => !known.has(id)));
    },
  };
}

/** The facts that a replica registers, as text. */
export function formatFacts({ address, version, isDraining }: Omit<Replica, "id">): string {
  return JSON.stringify({ language, address, version, draining: isDraining });
}

/** Reads the facts of a replica. Gives the reason when this replica cannot work with it. */
function parseFacts(id: string, text: string): Replica | { readonly unusable: string } {
  let facts: Partial<Record<string, unknown>>;
  try {
    facts = Object(JSON.parse(text)) as typeof facts;
  } catch {
    return { unusable: "its facts are not JSON" };
  }
  const spoken = facts["language"];
  if (typeof spoken !== "number" || Math.abs(spoken - language) > 1)
    return {
      unusable: `it speaks language ${JSON.stringify(spoken)} between replicas, and this one ${language}`,
    };
  const address = parseAddress(Object(facts["address"]) as Partial<Record<string, unknown>>);
  if (!/^[0-9a-f]{12}$/u.test(id)) return { unusable: "its id is not 12 hexadecimal digits" };
  if (address === undefined) return { unusable: "its address is of no known kind" };
  const version = typeof facts["version"] === "string" ? facts["version"] : "unknown";
  return { id, address, version, isDraining: facts["draining"] === true };
}

function parseAddress({
  kind,
  path,
  host,
  port,
}: Partial<Record<string, unknown>>): TrunkAddress | undefined {
  if (kind === "socket" && typeof path === "string") return { kind, path };
  if (kind === "tls" && typeof host === "string" && typeof port === "number") return { kind, host, port };
  return undefined;
}
