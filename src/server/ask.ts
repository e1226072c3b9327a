import { recover } from "../async/awaitable.ts";
import { ClosedError } from "../errors/closed-error.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import { lacking, notOffered, projectAsk } from "../mcp/project/ask.ts";
import { toRelayable } from "../mcp/project/capabilities.ts";
import { isAtLeast } from "../mcp/revision.ts";
import type { WireContext } from "../mcp/server.ts";
import type { Ask } from "../mcp/types.ts";
import type { AskCaller, CallContext } from "../tools/context.ts";

/** How a legacy caller is asked in the middle of a call; undefined for callers that cannot be. */
export function createAsk(wire: WireContext): AskCaller | undefined {
  const { era } = wire;
  if (era.kind === "modern" || era.session === undefined || wire.ask === undefined) return undefined;
  return async (ask, signal) => {
    const askable = toAskable(ask, wire);
    const answer = await askClient(askable, wire, signal);
    if (answer === undefined)
      throw new RpcError("rpc.method_not_found", `The client does not offer ${askable.method}`);
    return answer;
  };
}

/** Sends a question as it is. Undefined when there is no way to; a `ToolError` when the client can no longer answer. */
export async function askClient(
  { method, params }: Ask,
  wire: WireContext,
  signal: AbortSignal,
): Promise<RawJson | undefined> {
  try {
    return await wire.ask?.(method, params === undefined ? undefined : RawJson.fromValue(params), signal);
  } catch (error) {
    if (!(error instanceof ClosedError)) throw error;
    throw new ToolError(`The client left before it answered ${method}.`, { cause: error });
  }
}

/** How a legacy caller is told that its user is done with a page; undefined for callers that know no such notice. */
export function createVisited(wire: WireContext): CallContext["visited"] {
  const session = wire.era.kind === "legacy" ? wire.era.session : undefined;
  if (session === undefined || !isAtLeast(session.handshake.revision, "2025-11-25")) return undefined;
  if (session.handshake.capabilities.elicitation?.url === undefined) return undefined;
  return (elicitationId) => {
    const params = RawJson.fromValue({ elicitationId });
    if (wire.isOver !== false) return session.announce?.(visitedMethod, params);
    // On the stream of the call, as long as there is one: not every client listens to another.
    void recover(
      () => wire.notify(visitedMethod, params),
      () => {},
    );
  };
}

const visitedMethod = "notifications/elicitation/complete";

/** The question as the client's revision has it. Throws a `ToolError` when it cannot be asked. */
export function toAskable(ask: Ask, { era, ask: send }: WireContext): Ask {
  const handshake = era.kind === "legacy" ? era.session?.handshake : undefined;
  // What was declared counts only as far as the revision has it.
  const declared = handshake && toRelayable(handshake.capabilities, handshake.revision).capabilities;
  const canAsk =
    handshake !== undefined && declared !== undefined && send !== undefined && !lacking(ask, declared);
  const projected = canAsk ? projectAsk(ask, handshake.revision, crypto.randomUUID()) : undefined;
  if (projected === undefined) throw cannotAsk(ask, notOffered(ask, declared ?? {}));
  return projected;
}

/** What is told to the model when its client cannot be asked; the cause is for a server that asked. */
export function cannotAsk(ask: Ask, cause?: RpcError): ToolError {
  return new ToolError(`This needs ${ask.method}, which the client does not offer.`, { cause });
}
