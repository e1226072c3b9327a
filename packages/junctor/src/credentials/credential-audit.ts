import { randomUUID } from "node:crypto";
import type { CredentialEvent } from "@junctor/client/internal";
import { type Clock, dateOf } from "@junctor/core/async";
import type { AuditSink } from "@junctor/core/provider";

/** Records what became of a credential, beside the records of calls. A record that cannot be written changes nothing else. */
export function recordCredential(
  sink: AuditSink | undefined,
  server: string,
  { kind, issuer, clientId, reason, caller }: CredentialEvent,
  clock: Clock,
): void {
  if (sink === undefined) return;
  const record = {
    time: dateOf(clock.now(), clock),
    call: randomUUID(),
    trace: undefined,
    caller,
    issuer,
    clientId,
    server,
    kind: "event",
    tool: `credential.${kind}`,
    era: undefined,
    revision: undefined,
    argumentsDigest: "",
    outcome: kind === "refresh_failed" || kind === "connect_refused" ? "refused" : "ok",
    code: undefined,
    delivery: undefined,
    reason,
    bytesSent: 0,
    bytesReceived: 0,
    durationMs: 0,
  } as const;
  void Promise.resolve(sink(record)).catch(() => {}); // The records of calls tell that none can be written.
}
