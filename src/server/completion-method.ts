import { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { CompletionRef } from "../mcp/types.ts";
import type { CompletionProvider } from "../tools/provider.ts";
import { type Finish, type Method, objectParam, stringParam, stringsParam } from "./method.ts";

/** `completion/complete`. */
export function createCompletionMethod(completion: CompletionProvider, finish: Finish): Method {
  return async ({ params, wire, context }) => {
    const ref = parseRef(objectParam(params, "ref"));
    const argument = objectParam(params, "argument");
    const name = stringParam(argument, "name");
    const value = stringParam(argument, "value");
    const known = stringsParam(objectParam(params, "context"), "arguments");
    const result = await completion.complete({ ref, argument: { name, value }, known }, context);
    return finish(RawJson.fromValue({ completion: result }), wire.era);
  };
}

function parseRef(ref: RawJson | undefined): CompletionRef {
  const type = stringParam(ref, "type");
  if (type === "ref/prompt") return { type, name: stringParam(ref, "name") };
  if (type === "ref/resource") return { type, uri: stringParam(ref, "uri") };
  throw new RpcError("rpc.invalid_params", "Invalid params: ref.type must be ref/prompt or ref/resource");
}
