import type { CallerInfo } from "@junctor/core/provider";
import { sharedOwner } from "../credentials/index.ts";

/**
 * The owner of a caller's accounts, under which its credentials are stored. It has the issuer and the subject beside the name, because a
 * name such as `corp:17` means another person once the config gives `corp` to another issuer. Callers without a name are one owner: the
 * person who runs the gateway, as for `junctor login`.
 */
export function toOwner({ caller, identity }: Pick<CallerInfo, "caller" | "identity">): string {
  if (caller === undefined) return sharedOwner;
  const { issuer, subject } = identity ?? {};
  return JSON.stringify(issuer === undefined ? [caller] : [caller, issuer, subject]);
}

/** The name of the caller that an owner is; undefined for callers without one. */
export function toOwnerName(owner: string): string | undefined {
  if (owner === sharedOwner) return undefined;
  try {
    const [name] = JSON.parse(owner) as readonly unknown[];
    return typeof name === "string" ? name : owner;
  } catch {
    return owner;
  }
}
