import { type RpcError, rpcCodes } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { ErrorBody } from "./message.ts";

/**
 * The `error` member that tells of an {@link RpcError}. JSON has no NaN and no Infinity, and the protocol wants an integer:
 * any other code, such as one of an upstream that sent `1e400`, leaves as that of an internal error.
 */
export function toErrorBody(error: RpcError): ErrorBody {
  const { rpcCode, message } = error;
  const code = Number.isSafeInteger(rpcCode) ? rpcCode : rpcCodes["rpc.internal"];
  const data = dataOf(error);
  return data === undefined ? { code, message } : { code, message, data };
}

/** Undefined for what JSON cannot hold: that there is an answer matters more than its details. */
function dataOf(error: RpcError): RawJson | undefined {
  try {
    const { data } = error;
    return data === undefined ? undefined : RawJson.fromText(RawJson.fromValue(data).text);
  } catch {
    return undefined;
  }
}
