import type { CallerLimits } from "@junctor/core/async";
import type { Collision } from "@junctor/core/compose";
import type { Server } from "@junctor/core/mcp";
import type { Provider } from "@junctor/core/provider";
import type { Authenticate } from "@junctor/server";
import type { Mounts, Pages } from "@junctor/server/internal";
import type { ConfigIssue, GatewayConfig } from "../config/index.ts";
import type { ListedDefinitions, ServerStatus } from "../servers/index.ts";
import type { IssuerHealth } from "../tokens/index.ts";
import type { GatewayControls } from "./controls.ts";

/**
 * Servers behind one endpoint. Disposing it gives up parked calls, ends every server and, with it, every process it
 * started.
 */
export interface Gateway extends AsyncDisposable {
  /** For `listenHttp`, `serveStdio` and the like. */
  readonly server: Server;
  /** The same as a provider, to compose or to wrap. */
  readonly provider: Provider;
  /** Tells callers by their keys and tokens, for `listenHttp`; undefined when the config has neither keys nor issuers. */
  readonly authenticate: Authenticate | undefined;
  /** The profiles of the config, for `listenHttp`. */
  readonly mounts: Mounts;
  /** The pages on which callers connect accounts of their own, for `listenHttp`. */
  readonly pages: Pages | undefined;
  /** Settles when every server that starts with the gateway is listed or has failed once, at the latest after `firstListMs`. */
  readonly ready: Promise<void>;
  /** How every server is. */
  status(): readonly ServerStatus[];
  /**
   * How long a server takes to answer a request that gives it no work; undefined when it cannot be asked now, or does not
   * answer within `timeoutMs` (5 s).
   */
  measure(server: string, timeoutMs?: number): Promise<number | undefined>;
  /** Names that several servers claim, and who has them. */
  collisions(): readonly Collision[];
  /** Takes another config: only servers that are new, gone or changed are touched. Rejects, and changes nothing, if it is wrong. */
  update(config: object): Promise<void>;
  close(): Promise<void>;
}

/** A gateway whose config was parsed before; it can be given such another. */
export interface RunningGateway extends Gateway {
  /** Like `authenticate`, but always there: it follows the config, and lets every caller in while callers need no proof. */
  readonly admit: Authenticate;
  /** What one caller may hold, as the config says at the moment; for a listener. */
  readonly perCaller: CallerLimits;
  /** Resolves when a server that starts with the gateway is up and listed, or has failed once. */
  untilKnown(server: string): Promise<void>;
  /** Takes another config. With `keepsModules`, which no person agreed to, modules and the lock stay as they are. */
  apply(config: GatewayConfig, keepsModules?: boolean): Promise<void>;
  /** The server of one profile, for a listener that serves it alone; undefined where the config has none of that name. */
  serverAt(name: string): Server | undefined;
  /** Rules of the config that match nothing, as far as the servers they may be about are listed. */
  unmatchedRules(): readonly ConfigIssue[];
  /** Asks each issuer of tokens for its metadata and keys; the reason is undefined for one that is fine. */
  probeIssuers(): Promise<readonly IssuerHealth[]>;
  /** What every server lists now, as a lock would have it. */
  definitions(): readonly ListedDefinitions[];
  readonly controls: GatewayControls;
}
