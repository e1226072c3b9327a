import type { Agreement } from "@junctor/client";
import type { FailureCode } from "@junctor/core/errors";

/** Why a server failed. */
export interface Failure {
  readonly code: FailureCode;
  readonly reason: string;
  /** The end of what a child wrote to its standard error stream; for those who run the gateway, not for callers. */
  readonly said: string;
}

/** How a connection is. What may follow what is in `transitions`. */
export type Health =
  /** Not needed so far, or not for a while. */
  | { readonly kind: "idle" }
  /** It is about to start, and other servers start first. `after`: how it failed before, if it did. */
  | { readonly kind: "waiting" | "starting"; readonly since: number; readonly after?: Failure | undefined }
  | { readonly kind: "up"; readonly since: number; readonly agreement: Agreement; readonly connectMs: number }
  /** It failed, and is tried again at `nextTryAt`. `isBroken`: it failed too often lately, so that takes a while. */
  | (Failure & {
      readonly kind: "down";
      readonly since: number;
      readonly nextTryAt: number;
      readonly isBroken: boolean;
    })
  | { readonly kind: "stopped" };
