import type { Client, Agreement } from "@junctor/client";
import type { FailureCode } from "@junctor/core/errors";

/** Why a server failed. */
export interface Failure {
  readonly code: FailureCode;
  readonly reason: string;
  /** The end of what a child wrote to its standard error stream; for those who run the gateway, not for callers. */
  readonly said: string;
}

/** How a server behind the gateway is. */
export type Health =
  /** Not needed so far, or not for a while. */
  | { readonly kind: "idle" }
  /** `after`: how it failed before, if it did. `isQueued`: it waits until other servers have started. */
  | {
      readonly kind: "starting";
      readonly since: number;
      readonly after?: Failure | undefined;
      readonly isQueued?: boolean;
    }
  | { readonly kind: "up"; readonly since: number; readonly agreement: Agreement; readonly connectMs: number }
  /** It failed, and is tried again at `nextTryAt`. `isBroken`: it failed too often lately, so that takes a while. */
  | (Failure & {
      readonly kind: "down";
      readonly since: number;
      readonly nextTryAt: number;
      readonly isBroken: boolean;
    })
  | { readonly kind: "stopped" };

/** How a failure is told; of which server it is says what is a secret in it. */
export type DescribeFailure = (failure: Failure, server?: string) => string;

/** Why a server cannot be called now, for those who tried. Callers are told the reason alone unless `toText` says more. */
export function describeHealth(
  health: Health,
  now: number,
  toText: DescribeFailure = ({ reason }) => reason,
): string {
  switch (health.kind) {
    case "idle":
      return "it is not started";
    case "starting":
      if (health.isQueued === true) return "it is started after other servers, which are starting now";
      return health.after === undefined
        ? `it is still starting, since ${toSeconds(now - health.since)}`
        : `${toText(health.after)}; it is being started again`;
    case "up":
      return "it is up";
    case "down": {
      const next = `it is tried again in ${toSeconds(Math.max(0, health.nextTryAt - now))}`;
      return `${toText(health)}; ${health.isBroken ? "it failed too often, and " : ""}${next}`;
    }
    case "stopped":
      return "it was stopped or removed, or the gateway is shutting down";
  }
}

/** A duration for people: in whole seconds, rounded up. */
export function toSeconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}

/** How long a client's server takes to answer a request without params; undefined when it does not within `timeoutMs`. */
export async function measureAnswer(
  client: Pick<Client, "request">,
  method: string,
  timeoutMs: number,
): Promise<number | undefined> {
  const startedAt = performance.now();
  return client.request(method, undefined, { timeoutMs, maxTotalMs: timeoutMs }).then(
    () => performance.now() - startedAt,
    () => undefined,
  );
}

/** A process or conversation of a server. */
export interface ConnectionStatus {
  /** Why there is one. */
  readonly reason: string;
  readonly status: Health["kind"];
  /** Calls and watches that use it now. */
  readonly inUse: number;
}
