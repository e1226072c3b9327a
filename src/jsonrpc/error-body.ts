import type { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { ErrorBody } from "./message.ts";

/** The `error` member that tells of an {@link RpcError}. */
export function toErrorBody(error: RpcError): ErrorBody {
  const { rpcCode: code, message } = error;
  const data = error.data === undefined ? undefined : toData(error.data);
  return data === undefined ? { code, message } : { code, message, data };
}

/** Undefined for what JSON cannot hold: that there is an answer matters more than its details. */
function toData(data: unknown): RawJson | undefined {
  try {
    return RawJson.fromText(RawJson.fromValue(data).text);
  } catch {
    return undefined;
  }
}
