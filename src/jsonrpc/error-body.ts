import type { RpcError } from "../errors/rpc-error.ts";
import { RawJson } from "../json/raw.ts";
import type { ErrorBody } from "./message.ts";

/** The `error` member that tells of an {@link RpcError}. */
export function toErrorBody(error: RpcError): ErrorBody {
  const { rpcCode: code, message, data } = error;
  return data === undefined ? { code, message } : { code, message, data: RawJson.fromValue(data) };
}
