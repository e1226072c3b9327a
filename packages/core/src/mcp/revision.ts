import type { ClientCapabilities } from "./types.ts";

/** The revisions that open with `initialize`, oldest first. */
export const legacyRevisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const;

/** The revisions in which every request describes itself, oldest first. */
export const modernRevisions = ["2026-07-28"] as const;

export type LegacyRevision = (typeof legacyRevisions)[number];
export type ModernRevision = (typeof modernRevisions)[number];
/** A published version of MCP, named by its date. */
export type Revision = LegacyRevision | ModernRevision;

export const newestLegacyRevision: LegacyRevision = "2025-11-25";
export const newestModernRevision: ModernRevision = "2026-07-28";

export function isLegacyRevision(value: unknown): value is LegacyRevision {
  return (legacyRevisions as readonly unknown[]).includes(value);
}

export function isModernRevision(value: unknown): value is ModernRevision {
  return (modernRevisions as readonly unknown[]).includes(value);
}

/** Whether `revision` is `other` or came after it. Revision names are ISO dates, so known ones order as text. */
export function isAtLeast(revision: Revision, other: Revision): boolean {
  return revision >= other;
}

/**
 * What a caller can be asked for through us, and a key that is the same for callers
 * that can be asked the same.
 */
export interface Relayable {
  readonly capabilities: ClientCapabilities;
  /** Empty for callers that can be asked nothing. */
  readonly key: string;
  readonly isLegacy: boolean;
}

/** All that can be asked through us. */
export const everythingRelayable: ClientCapabilities = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: {},
};

/** One object for each era and set of capabilities: a few dozen at most. */
const interned = new Map<string, Relayable>();

const known = new WeakMap<ClientCapabilities, Map<Revision, Relayable>>();

/**
 * The part of a caller's capabilities that may be declared to a server on its behalf: no more than it declared itself, and
 * nothing that its revision has no form for. A change of folders is not announced across a hop, so
 * `roots.listChanged` is never declared.
 */
export function toRelayable(declared: ClientCapabilities, revision: Revision): Relayable {
  let byRevision = known.get(declared);
  if (byRevision === undefined) known.set(declared, (byRevision = new Map<Revision, Relayable>()));
  let relayable = byRevision.get(revision);
  if (relayable === undefined) {
    const capabilities = project(declared, revision);
    const key = Object.keys(capabilities).length === 0 ? "" : JSON.stringify(capabilities);
    const isLegacy = isLegacyRevision(revision);
    const id = `${isLegacy}${key}`;
    relayable = interned.get(id) ?? { capabilities, key, isLegacy };
    interned.set(id, relayable);
    byRevision.set(revision, relayable);
  }
  return relayable;
}

function project(
  { elicitation, sampling, roots }: ClientCapabilities,
  revision: Revision,
): ClientCapabilities {
  const knows = (since: "2025-06-18" | "2025-11-25"): boolean =>
    !isLegacyRevision(revision) || isAtLeast(revision, since);
  // Only an object declares a capability; a bare `elicitation: {}` means forms.
  const hasUrl = isObject(elicitation) && isObject(elicitation.url) && knows("2025-11-25");
  const hasForm = isObject(elicitation) && (isObject(elicitation.form) || !isObject(elicitation.url));
  const modes = { ...(hasForm ? { form: {} } : {}), ...(hasUrl ? { url: {} } : {}) };
  const canElicit = knows("2025-06-18") && (hasForm || hasUrl);
  const hasTools = isObject(sampling) && isObject(sampling.tools) && knows("2025-11-25");
  return {
    ...(canElicit ? { elicitation: modes } : {}),
    ...(isObject(sampling) ? { sampling: hasTools ? { tools: {} } : {} } : {}),
    ...(isObject(roots) ? { roots: {} } : {}),
  };
}

function isObject(value: object | undefined): value is object {
  return typeof value === "object" && value !== null;
}
