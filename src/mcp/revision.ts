/** The revisions that open with `initialize`, oldest first. */
export const legacyRevisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const;

/** The revisions in which every request describes itself, oldest first. */
export const modernRevisions = ["2026-07-28"] as const;

export type LegacyRevision = (typeof legacyRevisions)[number];
export type ModernRevision = (typeof modernRevisions)[number];
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
