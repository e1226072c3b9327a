import { RpcError, ToolError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { InputRequired, Round } from "@junctor/core/provider";

/** The state of a modern server behind the gateway, with the name of that server. Our own server seals it before it leaves. */
interface WrappedState {
  readonly via: string;
  readonly state?: unknown;
}

/**
 * Puts the name of its server around a state. All callers look like one to a server behind the gateway, so its own seal
 * cannot tell them apart. Our seal binds the state to the caller, and the name to the server.
 */
export function wrapState(outcome: InputRequired, server: string): InputRequired {
  const { state } = outcome;
  const wrapped: WrappedState = { via: server, ...(state === undefined ? {} : { state }) };
  return { ...outcome, state: wrapped, keepsAnswers: false };
}

/**
 * The state as its server gave it; undefined when the request is to be made anew. Throws when it is another server's, and
 * when the user does not want what the request needs.
 */
export function unwrapState(round: Round, server: string): Round | undefined {
  const { via, state } = (round.state ?? {}) as Partial<WrappedState>;
  if (round.state !== undefined && via !== server)
    throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another server");
  if (!isAgain(state)) return { ...round, state };
  // Made anew, it would be refused again, and the user asked again, without end.
  if (Object.values(round.answers).some(isRefusal))
    throw new ToolError(
      `${server} does this only after the user has visited a page, and the user does not want to.`,
    );
  return undefined;
}

function isRefusal(answer: RawJson): boolean {
  const action = answer.kind === "object" ? answer.at("action")?.value : undefined;
  return action === "decline" || action === "cancel";
}

/** The state of a request that is to be made anew, because the server refused it before it did anything. */
export const again = { again: true } as const;

/** A server's own state is a string. */
function isAgain(state: unknown): boolean {
  return typeof state === "object" && state !== null && "again" in state;
}

/** What the questions of a task that is followed leave with its caller, inside the seal. */
export interface FollowedState {
  readonly followed: string;
  /** The keys of questions that were answered. */
  readonly answered: readonly string[];
  /** The replica where the process of the task is, where there are several. */
  readonly at?: string | undefined;
}

export function isFollowedState(state: unknown): state is FollowedState {
  return typeof state === "object" && state !== null && typeof (state as FollowedState).followed === "string";
}

/** The replica where the task of a wrapped state is followed, if the state names one. */
export function followedAt(wrapped: unknown): string | undefined {
  const { state } = (wrapped ?? {}) as Partial<WrappedState>;
  return isFollowedState(state) ? state.at : undefined;
}

/** A resumption at the replica that its state names: it must not be passed on once more. */
export function arrived(round: Round): Round {
  const { via, state } = round.state as WrappedState;
  return { ...round, state: { via, state: { ...(state as FollowedState), at: undefined } } };
}
