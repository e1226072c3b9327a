import { ConfigError } from "@junctor/core/errors";
import type { AuditRecord } from "@junctor/core/provider";
import type { GatewayConfig, ServerConfig } from "./config.ts";
import { mayWantOAuth } from "./entry-rows.ts";

/** Whether an edit of the config takes a mount, or the path outside of all mounts, from a caller. */
export function losesMounts(caller: string, before: GatewayConfig, after: GatewayConfig): boolean {
  const boundIn = ({ keys }: GatewayConfig): readonly string[] | undefined =>
    keys.find(({ name }) => name === caller)?.profiles;
  const [had, has] = [boundIn(before), boundIn(after)];
  if (has === undefined) return false;
  return had === undefined || had.some((name) => !has.includes(name));
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
