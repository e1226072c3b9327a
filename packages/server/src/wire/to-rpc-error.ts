import { crossingOf, NotFoundError, RpcError } from "@junctor/core/errors";
import type { Era } from "@junctor/core/mcp";

/** How a call of a tool that is not there is answered. */
export type UnknownTool = "invalid_params" | "method_not_found" | "is_error";

/**
 * Turns an error that was thrown while a server handles a request into the error of the response. An unknown error is sent without detail; `onError` gets
 * everything. Never throws, whatever was thrown and whatever `onError` does with it: the caller must get an answer.
 */
export function toRpcError(
  thrown: unknown,
  era: Era,
  unknownTool: UnknownTool,
  onError: (error: unknown) => void,
): RpcError {
  try {
    return toKnown(thrown, era, unknownTool, onError);
  } catch {
    return new RpcError("rpc.internal", "Internal error", { cause: thrown });
  }
}

function toKnown(
  thrown: unknown,
  era: Era,
  unknownTool: UnknownTool,
  onError: (error: unknown) => void,
): RpcError {
  if (thrown instanceof RpcError) return thrown;
  if (thrown instanceof NotFoundError) return toNotFound(thrown, era, unknownTool);
  const crossing = crossingOf(thrown);
  if (crossing === undefined) {
    onError(thrown);
    return new RpcError("rpc.internal", "Internal error", { cause: thrown });
  }
  const fields = crossing.data.map((name) => [name, Reflect.get(thrown as Error, name)] as const);
  return new RpcError(crossing.as, (thrown as Error).message, {
    cause: thrown,
    ...(fields.length === 0 ? {} : { data: Object.fromEntries(fields) }),
  });
}

function toNotFound(error: NotFoundError, era: Era, unknownTool: UnknownTool): RpcError {
  const { what, id, message } = error;
  switch (what) {
    case "tool":
      return unknownTool === "method_not_found"
        ? new RpcError("rpc.method_not_found", message, { cause: error })
        : new RpcError("rpc.invalid_params", `Unknown tool: ${id}`, { cause: error });
    case "prompt":
      return new RpcError("rpc.invalid_params", `Unknown prompt: ${id}`, { cause: error });
    case "task": {
      const text = "Unknown task: it does not exist, has expired, or belongs to another caller";
      return new RpcError("rpc.invalid_params", text, { cause: error });
    }
    case "group":
      return new RpcError("rpc.resource_not_found", message, { cause: error });
    case "skill":
    case "directory":
      return new RpcError("rpc.invalid_params", message, { cause: error, data: { uri: id } });
    case "resource": {
      // 2026-07-28 took the code -32002 back; every older revision has it.
      const code = era.kind === "modern" ? "rpc.invalid_params" : "rpc.resource_not_found";
      return new RpcError(code, message, { cause: error, data: { uri: id } });
    }
  }
}
