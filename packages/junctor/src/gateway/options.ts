import type { CredentialStore } from "@junctor/client";
import type { Clock } from "@junctor/core/async";
import type { Seal, Observer, Implementation } from "@junctor/core/mcp";
import { keys, type KeysOf } from "@junctor/core/options";
import type { Provider } from "@junctor/core/provider";
import type { ParkingOptions } from "../bridge/index.ts";
import type { Cluster } from "../cluster/index.ts";
import type { Logins } from "../credentials/index.ts";
import type { GatewayLog } from "../log/index.ts";
import type { Unnamed } from "../policy/index.ts";
import type { SharedUpstreams } from "../servers/index.ts";
import type { OnServer } from "./fleet.ts";

/** What a gateway made by `createGateway` has beside its config. */
export interface GatewayOptions {
  /** Providers of this process, by name, as if they were servers; their tools keep their names, up to 64 characters, unless the config says otherwise. */
  readonly local?: { readonly [name: string]: Provider };
  /** Where the gateway writes its log; nowhere by default. */
  readonly log?: GatewayLog;
  /** Seals what callers carry between rounds. Share its secret between replicas. */
  readonly seal?: Seal;
  /**
   * What callers without a name may do where the config has keys: `trusted` is for stdio, where there are no keys. A gateway that trusts
   * them puts the last words of a server process that failed into its errors.
   */
  readonly unnamed?: Unnamed;
  /** Who the gateway says it is. */
  readonly info?: Implementation;
  /** How long the first lists wait for servers that are starting, instead of what the config says. */
  readonly firstListMs?: number;
  /** The folder in which the gateway remembers what each server listed last. Without one it remembers nothing. */
  readonly memoryFolder?: string;
  /** Where the credentials of servers that want OAuth are kept; in memory when left out, which is enough for `client_credentials`. */
  readonly credentials?: CredentialStore;
  /** Limits of calls that wait for the answers of their callers. */
  readonly parking?: Omit<ParkingOptions, "clock">;
  /** Where `${VAR}` comes from; the environment of this process. */
  readonly env?: { readonly [name: string]: string | undefined };
  /** What relative paths in the config are relative to; the current folder. */
  readonly folder?: string;
  /** The file the config came from, for messages. */
  readonly file?: string;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
  /** Sees every request; see {@link Observer}. */
  readonly observer?: Observer | undefined;
}

/** Options of a gateway that is started from a parsed config. */
export interface StartOptions extends GatewayOptions {
  /** Servers are started when this resolves, such as when a port is claimed; at once without it. */
  readonly startsWhen?: Promise<void>;
  /** The servers, and the parked calls, of all gateways of this process that share them. */
  readonly shared?: SharedUpstreams;
  /** Instead of `credentials`: also how they are renewed. */
  readonly logins?: Logins;
  /**
   * Whether callers may have accounts of their own at servers, as the config says. False, also when left out, where all callers are the
   * person who runs the gateway: then that person's logins are used.
   */
  readonly accounts?: boolean;
  /** Called for each change of a server. */
  readonly onServer?: OnServer;
  /** The other processes that serve the same config. */
  readonly cluster?: Cluster | undefined;
  /** A file descriptor that is kept open until no child is left, also when this process is killed. */
  readonly heldFd?: number | undefined;
}

/** The keys of the options, to refuse those that are misspelt. */
export const gatewayOptionKeys: KeysOf<GatewayOptions> = keys(
  "local log seal unnamed info firstListMs memoryFolder credentials parking env folder file clock observer",
);
