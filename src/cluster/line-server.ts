import { callerKey } from "../mcp/meta.ts";
import type { Seal } from "../mcp/seal.ts";
import type { Server } from "../mcp/server.ts";
import type { Implementation } from "../mcp/types.ts";
import { createServer } from "../server/server.ts";
import type { Provider } from "../tools/provider.ts";
import { isCaller } from "./caller-header.ts";

/**
 * One server of this replica, for the other replicas. They have let the caller in, applied all rules and limits, and say with each
 * request who the caller is.
 */
export function createLineServer(
  provider: Provider,
  info: Implementation,
  onError: (error: unknown, method: string) => void,
): Server {
  const server = createServer(provider, info, { serves: "modern", seal: plainSeal, passesOn: true, onError });
  return {
    ...server,
    handle: (request, wire) => {
      const told: unknown = request.params?.at("_meta")?.at(callerKey)?.value;
      const identity = isCaller(told) ? told : undefined;
      const caller = identity?.name;
      return server.handle(request, { ...wire, caller, identity, owner: caller ?? wire.owner });
    },
  };
}

/** The state of a request between two replicas needs no seal: the replica that the caller sees puts its own around it. */
const plainSeal: Seal = {
  seal: (payload) => JSON.stringify(payload),
  open: (token) => {
    try {
      return { ok: true, payload: JSON.parse(token) as unknown };
    } catch {
      return { ok: false, reason: "malformed" };
    }
  },
};

/** The state of a parked call as the line server of its home takes it. */
export function toLineState(state: unknown): string {
  return JSON.stringify({ answers: [], state });
}

/** The state of a parked call in an answer of the line server of its home. */
export function fromLineState(token: unknown): unknown {
  return typeof token === "string" ? (JSON.parse(token) as { readonly state?: unknown }).state : undefined;
}
