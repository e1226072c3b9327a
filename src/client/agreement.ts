import type { LegacyRevision, ModernRevision } from "../mcp/revision.ts";
import type { Implementation, ServerCapabilities } from "../mcp/types.ts";

/** What a client and a server settled on. */
export interface Agreement {
  readonly mode:
    | { readonly kind: "modern"; readonly revision: ModernRevision }
    | { readonly kind: "legacy"; readonly revision: LegacyRevision };
  /** Self-reported: for display and logs, never for decisions. */
  readonly serverInfo: Implementation | undefined;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
}
