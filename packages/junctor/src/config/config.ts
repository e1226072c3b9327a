import type { ConfigIssue } from "@junctor/core/errors";
import type { ServerLaunch } from "./entry-rows.ts";
import type { GatewaySettings } from "./gateway-rows.ts";
import type { SandboxConfig, ServerSettings } from "./server-rows.ts";

/** One MCP server, with everything that was left out filled in. */
export interface ServerConfig extends Omit<ServerSettings, "prefix" | "sandbox"> {
  readonly name: string;
  readonly launch: ServerLaunch;
  /** What its names begin with: its own name, made fit, unless said otherwise. `false`: nothing. */
  readonly prefix: string | false;
  /** Undefined: its process may do all that this user may. */
  readonly sandbox: SandboxConfig | undefined;
  /** Exact names of tools, from `enabledTools` and its like in the entry; undefined means all. */
  readonly onlyTools: readonly string[] | undefined;
  /** Exact names of tools, from `disabledTools` and its like in the entry. */
  readonly withoutTools: readonly string[];
}

/** A server of the file that is not used, because a variable it needs has no value. */
export interface DisabledServer extends Pick<ServerConfig, "name" | "prefix" | "tools" | "audit"> {
  /** The missing part and the remedy, for those who run the gateway. */
  readonly reason: string;
}

/** A config, checked, with its variables filled in. Made by `parseConfig` and its like. */
export interface GatewayConfig extends GatewaySettings {
  /** In the order of the file. */
  readonly servers: readonly ServerConfig[];
  readonly disabled: readonly DisabledServer[];
  /**
   * Never to be shown, longest first: keys, and what `secret-value.ts` takes for a secret of the environment, of headers, of URLs, of
   * `env` and of `args`. Shorter than six characters is left out: hiding every `1` and `true` would hide the log.
   */
  readonly secrets: readonly string[];
  /** By server: secrets that read like ordinary words. They are not shown in what is about their server. */
  readonly ownSecrets: { readonly [server: string]: readonly string[] };
  /** Settings that are odd and not wrong. */
  readonly warnings: readonly ConfigIssue[];
}
