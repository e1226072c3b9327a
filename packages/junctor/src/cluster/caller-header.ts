import type { Caller } from "@junctor/core/mcp";
import type { PipedFrom } from "@junctor/server/internal";

/** The header of a piped request that says who its sender is. Trusted, because nothing but a replica reaches a trunk. */
const callerHeader = "junctor-caller";

export function toCallerHeader(from: PipedFrom): { readonly [name: string]: string } {
  return { [callerHeader]: Buffer.from(JSON.stringify(from)).toString("base64url") };
}

/** Undefined for a request that does not come from a replica. */
export function fromCallerHeader(headers: { readonly [name: string]: unknown }): PipedFrom | undefined {
  const text = headers[callerHeader];
  if (typeof text !== "string") return undefined;
  try {
    const {
      identity,
      address,
      hops = 1,
      isMending = false,
    } = JSON.parse(Buffer.from(text, "base64url").toString()) as PipedFrom;
    return { identity: isCaller(identity) ? identity : undefined, address, hops, isMending };
  } catch {
    return undefined;
  }
}

export function isCaller(value: unknown): value is Caller {
  return typeof value === "object" && value !== null && typeof (value as Caller).name === "string";
}
