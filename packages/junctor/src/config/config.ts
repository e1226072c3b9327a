import { ConfigError, type ConfigIssue } from "@junctor/core/errors";
import type { AuditRecord } from "@junctor/core/provider";
import { mayWantOAuth, type ServerLaunch } from "./entry-rows.ts";
import type { GatewaySettings } from "./gateway-rows.ts";
import type { SandboxConfig, ServerSettings } from "./server-rows.ts";

/** One MCP server, with everything that was left out filled in. */
export interface ServerConfig extends Omit<ServerSettings, "prefix" | "sandbox"> {
  readonly name: string;
  readonly launch: ServerLaunch;
  /** What its public names begin with; by default, its own name made fit. `false`: nothing. */
  readonly prefix: string | false;
  /** Undefined: its process may do all that this user may. */
  readonly sandbox: SandboxConfig | undefined;
  /** Exact names of tools, from `enabledTools` and the like in the entry; undefined means all. */
  readonly onlyTools: readonly string[] | undefined;
  /** Exact names of tools, from `disabledTools` and the like in the entry. */
  readonly withoutTools: readonly string[];
}

/** A server of the file that is not used, because a variable it needs has no value. */
export interface DisabledServer extends Pick<ServerConfig, "name" | "prefix" | "tools" | "audit"> {
  /** The missing part and the remedy, for operators. */
  readonly reason: string;
}

/** A config, checked, with its variables filled in. Made by `parseConfig` and the like. */
export interface GatewayConfig extends GatewaySettings {
  /** In the order of the file. */
  readonly servers: readonly ServerConfig[];
  readonly disabled: readonly DisabledServer[];
  /**
   * Never to be shown, longest first: keys, and what `secrecyOf` takes for a secret in the environment, headers, URLs, `env` and `args`.
   * Texts of fewer than six characters are left out: hiding every `1` and `true` would hide the log.
   */
  readonly secrets: readonly string[];
  /** By server: secrets that read like ordinary words. They are hidden only in what is about that server. */
  readonly ownSecrets: { readonly [server: string]: readonly string[] };
  /** Settings that are odd but not wrong. */
  readonly warnings: readonly ConfigIssue[];
}

/** Whether an edit of the config takes a profile, or the path outside of all profiles, from a caller. */
export function losesMounts(caller: string, before: GatewayConfig, after: GatewayConfig): boolean {
  const boundIn = ({ keys }: GatewayConfig): readonly string[] | undefined =>
    keys.find(({ name }) => name === caller)?.profiles;
  const [boundBefore, boundAfter] = [boundIn(before), boundIn(after)];
  if (boundAfter === undefined) return false;
  return boundBefore === undefined || boundBefore.some((name) => !boundAfter.includes(name));
}

/** By server: whether its callers have accounts of their own. Empty when none has. */
export function toCredentials({ servers }: GatewayConfig): ReadonlyMap<string, AuditRecord["credential"]> {
  const reached = servers.filter(({ launch }) => mayWantOAuth(launch));
  if (!reached.some(({ credentials }) => credentials === "perCaller")) return new Map();
  return new Map(
    reached.map(({ name, credentials }) => [name, credentials === "perCaller" ? "own" : "shared"]),
  );
}

/** Whether callers need no proof. */
export function isOpen(config: GatewayConfig): boolean {
  return config.keys.length === 0 && config.issuers.length === 0 && !hasCertificates(config);
}

/** Whether callers may prove who they are by a certificate. */
export function hasCertificates({ http }: GatewayConfig): boolean {
  return http.tls?.clientCa !== undefined;
}

/** The error for an edit that adds the first or removes the last proof: the listener learns only at its start whether callers must prove who they are. */
export function proofInOrOut(file: string): ConfigError {
  const message = "cannot be brought in or taken away while the gateway runs: make another gateway";
  return new ConfigError(file, [{ path: "junctor.keys, junctor.issuers", message }]);
}

/** How often a server runs where the gateway has several replicas: once in all, or in each replica. */
export function placementOf({ placement, launch, sharing }: ServerConfig): "single" | "each" {
  if (launch.kind !== "command") return placement ?? "each";
  return sharing === "shared" ? (placement ?? "single") : "each";
}
