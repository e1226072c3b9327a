import { callerKey } from "../mcp/meta.ts";
import type { Seal } from "../mcp/seal.ts";
import type { Server } from "../mcp/server.ts";
import type { Implementation } from "../mcp/types.ts";
import { createServer } from "../server/server.ts";
import type { InputRequired, Provider, Resumption } from "../tools/provider.ts";
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

/** Marks clients whose other side is a line server. */
const lineMark = Symbol("line");

export function markLine<Client extends object>(client: Client): Client {
  return Object.defineProperty(client, lineMark, { value: true });
}

/** Whether the server of a client is another replica. The states of its questions are those of this gateway. */
export function isLine(client: object): boolean {
  return lineMark in client;
}

/** A round of a request for a line server. A state is the same whichever replica made it. */
export function toLineRound(resumption: Resumption): Resumption {
  return { ...resumption, state: JSON.stringify({ answers: [], state: resumption.state }) };
}

/** Questions of a line server, with the state as it is inside every replica. */
export function fromLineRound(outcome: InputRequired): InputRequired {
  const { state } =
    typeof outcome.state === "string" ? (JSON.parse(outcome.state) as { state?: unknown }) : {};
  return { ...outcome, state, keepsAnswers: false };
}

/** The id of a task on a line, made from the ref that it has at the replica of its process. */
export function toLineTaskId(ref: string): string {
  return JSON.stringify(ref);
}

export function fromLineTaskId(id: string): string {
  return JSON.parse(id) as string;
}
