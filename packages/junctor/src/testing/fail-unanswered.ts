import { RpcError } from "@junctor/core/errors";
import type { Server, WireContext } from "@junctor/core/mcp";

/** Marks the error of a question without an answer, on its way through the protocol. */
const unanswered = { unanswered: true };

/** The error for a question that the script of a test has no answer for. */
export function createUnanswered(message: string): RpcError {
  return new RpcError("rpc.internal", message, { data: unanswered });
}

/**
 * The same server, except that a request fails when a question it asked had no answer. A legacy server would tell the tool
 * of it and go on, and the test would never hear of it. A modern client fails the call by itself.
 */
export function failUnanswered(server: Server): Server {
  return {
    serves: server.serves,
    parseErrorCode: server.parseErrorCode,
    handle: async (request, context) => {
      const missed: RpcError[] = [];
      try {
        const result = await server.handle(
          request,
          watch(context, (error) => missed.push(error)),
        );
        if (missed[0] === undefined) return result;
      } catch (error) {
        throw missed[0] ?? error;
      }
      throw missed[0];
    },
    attach: (session, announce, caller) => server.attach(session, announce, caller),
    onRevoked: (listener) => server.onRevoked?.(listener) ?? (() => {}),
    drain: () => server.drain(),
  };
}

/** The context of one request on a channel, which tells when a question of that request had no answer. */
function watch(context: WireContext, onUnanswered: (error: RpcError) => void): WireContext {
  return {
    ...context,
    notify: (method, params) => context.notify(method, params),
    ask: async (...question) => {
      if (context.ask === undefined)
        throw new RpcError("rpc.method_not_found", "The client takes no questions");
      try {
        return await context.ask(...question);
      } catch (error) {
        if (isUnanswered(error)) onUnanswered(error);
        throw error;
      }
    },
  };
}

function isUnanswered(error: unknown): error is RpcError {
  if (!(error instanceof RpcError) || typeof error.data !== "object" || error.data === null) return false;
  return (error.data as Partial<typeof unanswered>).unanswered === true;
}
