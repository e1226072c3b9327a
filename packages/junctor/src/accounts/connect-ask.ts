import { randomUUID } from "node:crypto";
import { RpcError, ToolError } from "@junctor/core/errors";
import { elicitUrl, urlElicitationRequired, isAtLeast, isLegacyRevision } from "@junctor/core/mcp";
import type { CallContext, InputRequired, Round } from "@junctor/core/provider";
import type { Account } from "./account.ts";

/** What a caller carries while its person connects an account, inside the seal. */
interface ConnectState {
  /** The server. */
  readonly connect: string;
  /** How often the server refused an account that was connected for this call. */
  readonly attempt: number;
  /** Names the credential that was there before, if there was one. */
  readonly before?: string;
}

/** A wish that the person of a caller connects its account. */
export interface ConnectWish {
  readonly server: string;
  /** Where that is done. */
  readonly link: string;
  /** Whether there is an account already, which is not enough. */
  readonly isMore: boolean;
  readonly attempt: number;
  readonly before: string | undefined;
}

/** Calls whose callers were asked to connect, by the part of their context that all copies of it share. */
const asked = new WeakSet<object>();

/** Whether the caller of a call was asked to connect an account instead of being served. */
export function wasAskedToConnect(context: CallContext): boolean {
  return asked.has(context.cancellation ?? context);
}

/** Names the question among those of a call. */
const askKey = "connect";

/**
 * Asks for an account by the means of the caller's client: a modern one is given a page to show and comes back, one of 2025-11-25 gets
 * an error that names the page. Undefined for clients that show no pages: {@link tellToConnect} makes a text for them.
 */
export function askToConnect(
  { server, link, isMore, attempt, before }: ConnectWish,
  context: CallContext,
  account: Account,
): InputRequired | undefined {
  const { revision, capabilities } = context;
  asked.add(context.cancellation ?? context);
  if (capabilities.elicitation?.url === undefined) return undefined;
  const message = isMore
    ? `${server} wants more access to your account. Open the page to give it.`
    : `${server} works with your own account. Open the page to connect it.`;
  if (!isLegacyRevision(revision)) {
    const state: ConnectState = { connect: server, attempt, ...(before === undefined ? {} : { before }) };
    const asks = { [askKey]: elicitUrl(message, link) };
    return { kind: "input_required", asks, state, keepsAnswers: false };
  }
  if (!isAtLeast(revision, "2025-11-25")) return undefined;
  const elicitationId = randomUUID();
  const { visited } = context;
  if (visited !== undefined) account.onConnected(() => visited(elicitationId));
  const data = { elicitations: [{ mode: "url", elicitationId, url: link, message }] };
  throw new RpcError("rpc.other", message, { rpcCode: urlElicitationRequired, data });
}

/** The same in words, for a model that passes them on. */
export function tellToConnect({ server, link, isMore }: ConnectWish): string {
  const why = isMore
    ? `${server} wants more access to your account`
    : `${server} works with your own account`;
  return (
    `${why}, and nothing was sent to it. Open this link in a browser to connect the account, then call again: ${link} ` +
    "(It is good for 10 minutes, and for you only: show it to the user, and to no one else.)"
  );
}

export function isConnectState(state: unknown): state is ConnectState {
  return typeof state === "object" && state !== null && typeof (state as ConnectState)[askKey] === "string";
}

/** Checks that a caller came back for the server, and that its person did not say no. */
export function assertComesBack({ answers }: Round, state: ConnectState, server: string): void {
  if (state.connect !== server)
    throw new RpcError("rpc.invalid_params", "Invalid params: requestState belongs to another server");
  const answer = answers[askKey];
  const action = answer?.kind === "object" ? answer.at("action")?.value : undefined;
  if (action === "decline" || action === "cancel")
    throw new ToolError(`${server} works with your own account, and the user does not want to connect it.`, {
      code: "tool.refused",
    });
}
