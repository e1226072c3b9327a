import type { Naming } from "@junctor/core/compose";
import type { Provider } from "@junctor/core/provider";
import type { GatewayConfig } from "../config/index.ts";
import type { Pins } from "../lock/index.ts";
import type { CallerPolicy } from "../policy/index.ts";
import type { MiddlewareChain } from "./chain.ts";

/**
 * All that a gateway takes from one config: an immutable value, complete before it is used, and replaced as a whole by an edit. It has
 * no connection, session, timer or parked call; those are in the `Runtime`, which lives on.
 */
export interface Generation {
  readonly config: GatewayConfig;
  readonly naming: Naming;
  readonly policy: CallerPolicy;
  /** The approved definitions; undefined where none need approval. */
  readonly pins: Pins | undefined;
  readonly chain: MiddlewareChain;
  /** The secrets of the configs that a person agreed to. */
  readonly agreedSecrets: readonly string[];
  /** What callers talk to, by the name of the entrance. */
  readonly entrances: ReadonlyMap<string | undefined, Provider>;
  /** What reads results that this replica keeps, for the other replicas, by the name of the entrance. */
  readonly readers: ReadonlyMap<string | undefined, Provider>;
}
