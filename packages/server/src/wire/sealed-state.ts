import { RpcError, SealError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Seal } from "@junctor/core/mcp";

/** What a modern caller carries between the rounds of a request, inside the seal. */
interface SealedState {
  readonly answers: readonly (readonly [string, string])[];
  readonly state?: unknown;
  /** For the observation of the next round. */
  readonly seen?: unknown;
}

/** State that is too large to seal is the fault of the provider that made it; the caller is told so. */
export function sealState(state: SealedState, seal: Seal, binding: string, ttlMs: number): string {
  try {
    return seal.seal(state, binding, ttlMs);
  } catch (error) {
    if (!(error instanceof SealError) || error.code !== "seal.too_large") throw error;
    throw new RpcError("rpc.internal", error.message, { cause: error, data: { code: error.code } });
  }
}

/** Why it failed is not told: a forger learns nothing, and an honest client can do no more than start over. */
export function openState(token: RawJson, seal: Seal, binding: string): SealedState {
  const opened = token.kind === "string" ? seal.open(token.value as string, binding) : undefined;
  if (opened?.ok === true) return opened.payload as SealedState;
  throw new RpcError(
    "rpc.invalid_params",
    "Invalid params: requestState is invalid or expired; make the request anew, without it",
  );
}

/**
 * What a sealed state is good for: this caller, this method, this name or URI, these arguments. The arguments are bound
 * as the bytes that came, because two spellings of one number can be two numbers to another parser.
 */
export function toBinding(caller: string | undefined, method: string, params: RawJson | undefined): string {
  const hash = process.getBuiltinModule("node:crypto").createHash("sha256");
  for (const key of ["name", "uri", "arguments"]) {
    const member = params?.at(key);
    hash.update(member === undefined ? "-" : `${member.byteLength}:`);
    if (member !== undefined) hash.update(member.bytes);
  }
  return JSON.stringify([caller ?? null, method, hash.digest("base64url")]);
}
