import { fromSignal } from "../async/cancellation.ts";
import type { Deadline, Deadlines } from "../async/deadline.ts";
import { RpcError } from "../errors/rpc-error.ts";
import { ToolError } from "../errors/tool-error.ts";
import { RawJson } from "../json/raw.ts";
import type { Request } from "../jsonrpc/message.ts";
import { toRelayable } from "../mcp/capabilities.ts";
import { carriedMeta } from "../mcp/carried-meta.ts";
import type { LinkEvents } from "../mcp/link.ts";
import { toAsk } from "../mcp/question.ts";
import type { AskCaller, CallContext, CallEvent } from "../tools/context.ts";
import type { AskRouter } from "./ask-router.ts";
import type { RequestSpec } from "./conversation.ts";

/** Makes requests on behalf of others, who hear of progress and answer questions themselves. */
export type OnBehalf = <T>(context: CallContext, work: (spec: RequestSpec) => Promise<T>) => Promise<T>;

/** `router` is there where questions are for the callers, and not for the client's own handlers. */
export function createOnBehalf(deadlines: Deadlines, router: AskRouter | undefined): OnBehalf {
  return (context, work) => {
    const stop = context.cancellation ?? fromSignal(context.signal);
    return deadlines.run({ stop }, (deadline) => {
      const spec = toSpecFor(context, deadline);
      const { ask } = context;
      return router === undefined || ask === undefined
        ? work(spec)
        : askable(ask, router, deadline, ownerOf(context), (onAsked) => work({ ...spec, onAsked }));
    });
  };
}

/** Whose a call is: a conversation's, or of whoever has the name. */
function ownerOf({ session, caller }: CallContext): unknown {
  return session ?? caller;
}

/** How a request is made under a deadline. */
export function toSpec(deadline: Deadline): RequestSpec {
  const onSent = (): void => {
    deadline.isSent = true;
  };
  return { stop: deadline.stop, onSent };
}

function toSpecFor(context: CallContext, deadline: Deadline): RequestSpec {
  const { logLevel, wantsProgress } = context;
  const { stop, onSent } = toSpec(deadline);
  const { capabilities } = toRelayable(context.capabilities, context.revision);
  const meta = carriedMeta(context.meta);
  if (!wantsProgress && logLevel === undefined) return { stop, onSent, capabilities, meta };
  // Who cannot be told any more has left, and their signal says so.
  const onEvent = (event: CallEvent): void => {
    deadline.touch();
    context.emit(event).catch(() => {});
  };
  return { stop, onSent, capabilities, meta, onEvent, wantsProgress, logLevel };
}

/** Makes a request in the middle of which its caller may be asked something. */
async function askable<T>(
  ask: AskCaller,
  router: AskRouter,
  deadline: Deadline,
  owner: unknown,
  work: (onAsked: LinkEvents["asked"]) => Promise<T>,
): Promise<T> {
  // Nobody is to be asked for a call that is over, whoever ended it.
  const over = new AbortController();
  const asker: AskCaller = async (question, asking) => {
    const release = deadline.hold(); // The wait is the caller's, so the server is not idle.
    try {
      return await ask(question, AbortSignal.any([asking, over.signal]));
    } finally {
      release();
    }
  };
  const leave = router.join(asker, owner);
  try {
    return await work((request, asking) => answerBy(asker, request, asking));
  } finally {
    leave(!deadline.stop.isAborted);
    over.abort(new DOMException("The call is over", "AbortError"));
  }
}

/** Has a caller answer a legacy server's request. A ping is not the caller's affair. */
export async function answerBy(ask: AskCaller, request: Request, signal: AbortSignal): Promise<RawJson> {
  if (request.method === "ping") return RawJson.fromText("{}");
  const question = toAsk(request.method, request.params);
  if (question === undefined)
    throw new RpcError("rpc.method_not_found", `Method not found: ${request.method}`);
  try {
    return await ask(question, signal);
  } catch (error) {
    // A caller that cannot be asked is told to the model in words, and to the server by a code.
    throw error instanceof ToolError && error.cause instanceof RpcError ? error.cause : error;
  }
}
