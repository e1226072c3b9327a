import { type Awaitable, isPromise, LazyAbort } from "@junctor/core/async";
import type { RawJson } from "@junctor/core/json";
import { callerKey, type Seal, type Server, type WireContext, type Implementation } from "@junctor/core/mcp";
import type { InputRequired, Provider, Round } from "@junctor/core/provider";
import { createServer } from "@junctor/server";
import { isCaller } from "./caller-header.ts";

/**
 * One server of this replica, for the other replicas. They have authenticated the caller and applied all rules and limits, and each
 * request names its caller.
 */
export function createConnectionServer(
  provider: Provider,
  info: Implementation,
  onError: (error: unknown, method: string) => void,
): Server {
  const server = createServer(provider, info, { serves: "modern", seal: plainSeal, passesOn: true, onError });
  return {
    ...server,
    handle: (request, wire) => {
      const claimed: unknown = request.params?.at("_meta")?.at(callerKey)?.value;
      const identity = isCaller(claimed) ? claimed : undefined;
      const caller = identity?.name;
      const ofCaller = { ...wire, caller, identity, owner: caller ?? wire.owner };
      // A call with a state stays when the connection breaks: its caller can come back by another replica. Any other call is cancelled.
      if (request.params?.at("requestState") !== undefined) return server.handle(request, ofCaller);
      return untilInputEnd(ofCaller, (ended) => server.handle(request, ended));
    },
  };
}

/** Serves a request that is cancelled when the connection it came by breaks. */
function untilInputEnd(
  wire: WireContext,
  serve: (wire: WireContext) => Awaitable<RawJson>,
): Awaitable<RawJson> {
  const { inputEnd, cancellation } = wire;
  if (inputEnd === undefined) return serve(wire);
  const stop = new LazyAbort();
  const cancelled = (): void => stop.abort(cancellation.reason);
  const broken = (): void => stop.abort(inputEnd.reason);
  cancellation.onAbort(cancelled);
  inputEnd.onAbort(broken);
  const off = (): void => {
    cancellation.offAbort(cancelled);
    inputEnd.offAbort(broken);
  };
  try {
    const served = serve({ ...wire, cancellation: stop });
    if (isPromise(served)) served.then(off, off);
    else off();
    return served;
  } catch (error) {
    off();
    throw error;
  }
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

/** Marks clients whose other side is a connection server. */
const remoteMark = Symbol("connection");

export function markRemote<Client extends object>(client: Client): Client {
  return Object.defineProperty(client, remoteMark, { value: true });
}

/** Whether the server of a client is another replica. The states of its questions are those of this gateway. */
export function isRemote(client: object): boolean {
  return remoteMark in client;
}

/** A round of a request for a connection server. A state is the same whichever replica made it. */
export function toRemoteRound(round: Round): Round {
  return { ...round, state: JSON.stringify({ answers: [], state: round.state }) };
}

/** Questions of a connection server, with the state as it is inside every replica. */
export function fromRemoteRound(outcome: InputRequired): InputRequired {
  const { state } =
    typeof outcome.state === "string" ? (JSON.parse(outcome.state) as { state?: unknown }) : {};
  return { ...outcome, state, keepsAnswers: false };
}

/** The id of a task on a connection: its tool and the ref that it has at the replica of its process, as that server seals them. */
export function toRemoteTaskId(tool: string, ref: string): string {
  return JSON.stringify([tool, ref]);
}

/** The ref in an id of {@link toRemoteTaskId}. */
export function fromRemoteTaskId(id: string): string {
  const [, ref] = JSON.parse(id) as readonly [tool: string, ref: string];
  return ref;
}
