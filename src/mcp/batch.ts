import type { Batch } from "../jsonrpc/channel.ts";
import { hasClaim } from "./envelope.ts";
import type { Session } from "./session.ts";

/**
 * Whether a batch is legal in a session. Only 2025-03-26 has them, and it keeps the handshake out of them; a message
 * that says it is modern belongs to a revision without batches.
 */
export function isLegalBatch(batch: Batch, session: Session | undefined): boolean {
  if (session?.handshake.revision !== "2025-03-26") return false;
  return batch.items.every((item) => {
    if (item.kind !== "request" && item.kind !== "notification") return true;
    return item.method !== "initialize" && !hasClaim(item.params);
  });
}
