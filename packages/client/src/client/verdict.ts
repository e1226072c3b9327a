import { ClosedError, ConnectError, HttpError, RpcError, rpcCodes } from "@junctor/core/errors";
import { isLegacyRevision, isModernRevision, type ModernRevision } from "@junctor/core/mcp";

/** What a server that refused our revision offers instead: one we both know, a legacy one, or nothing. */
export function otherRevision(
  error: unknown,
  tried: ModernRevision,
): ModernRevision | "legacy" | "disjoint" | undefined {
  if (!(error instanceof RpcError) || error.rpcCode !== rpcCodes["rpc.unsupported_version"]) return undefined;
  const supported = (error.data as { supported?: unknown } | undefined)?.supported;
  if (!Array.isArray(supported) || supported.length === 0) return undefined;
  const mutual = supported.find((candidate): candidate is ModernRevision => isModernRevision(candidate));
  // Refused although it is in the list: try once more, as the list says; a second refusal is an error.
  if (mutual !== undefined) return mutual === tried ? tried : mutual;
  return supported.some(isLegacyRevision) ? "legacy" : "disjoint";
}

/**
 * Whether a failed probe says nothing about the era. On a pipe everything but our own giving up says *legacy*. On HTTP,
 * authorization, server faults and the network say nothing, and two errors say *modern* if they come with a 400.
 */
export function isNoVerdict(error: unknown, isHttp: boolean): boolean {
  if (!isHttp)
    return !(error instanceof RpcError || error instanceof ClosedError || error instanceof ConnectError);
  const status = statusOf(error);
  if (status === 401 || status === 403 || (status !== undefined && status >= 500)) return true;
  if (error instanceof RpcError) return status === 400 && modernCodes.has(error.rpcCode);
  return !(error instanceof HttpError);
}

/** Whether the server may be one of 2024-11-05, which takes no requests where it streams. */
export function mayBeHttpSse(error: unknown): boolean {
  const status = statusOf(error);
  if (status !== 400 && status !== 404 && status !== 405) return false;
  return !(error instanceof RpcError && modernCodes.has(error.rpcCode));
}

const modernCodes = new Set<number>([
  rpcCodes["rpc.header_mismatch"],
  rpcCodes["rpc.missing_capability"],
  rpcCodes["rpc.unsupported_version"],
]);

/** The HTTP status an error came with. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof HttpError) return error.status;
  return error instanceof RpcError && error.cause instanceof HttpError ? error.cause.status : undefined;
}
