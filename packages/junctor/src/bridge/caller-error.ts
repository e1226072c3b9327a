import { RpcError, rpcCodes, ToolError, UpstreamError } from "@junctor/core/errors";
import {
  declaredExtension,
  askVisits,
  missingCapability,
  pagesOf,
  isAtLeast,
  isLegacyRevision,
  toRelayable,
  type ClientCapabilities,
} from "@junctor/core/mcp";
import type { CallContext, InputRequired } from "@junctor/core/provider";
import { again, wrapState } from "./wrapped-state.ts";

/**
 * A server's error in words its caller's revision has: each of these codes means something to one era only. The others are
 * the same for all.
 */
export function toCallerError(
  error: unknown,
  caller: Pick<CallContext, "revision" | "capabilities">,
  server: string,
): unknown {
  if (!(error instanceof RpcError)) return error;
  if (error.rpcCode === rpcCodes["rpc.missing_capability"]) return toMissing(error, caller, server);
  const { revision, capabilities } = caller;
  const pages = pagesOf(error);
  if (pages === undefined) return error;
  if (isLegacyRevision(revision)) {
    if (!isAtLeast(revision, "2025-11-25"))
      return new ToolError(
        `${server} does this only after the user has visited a page, which the client cannot show.`,
      );
    if (askVisits(pages) !== undefined) return error;
  } else if (capabilities.elicitation?.url === undefined)
    return missingCapability({ elicitation: { url: {} } });
  const text = `${server} wants the user to visit a page, and gives no http or https address.`;
  return new UpstreamError("failed", text, { server, delivery: "answered", cause: error });
}

/** A server's error about missing capabilities, without those that the caller has declared. */
function toMissing(
  error: RpcError,
  { revision, capabilities }: Pick<CallContext, "revision" | "capabilities">,
  server: string,
): Error {
  const { requiredCapabilities } = (error.data ?? {}) as { readonly requiredCapabilities?: unknown };
  const { extensions, ...asked } = isMap(requiredCapabilities) ? requiredCapabilities : {};
  const declared = toRelayable(capabilities, revision).capabilities;
  const wanted = isMap(extensions) ? extensions : {};
  const ids = Object.keys(wanted).filter((id) => declaredExtension(capabilities, id) === undefined);
  const lacks = {
    ...without(asked, declared),
    ...(ids.length === 0 ? {} : { extensions: Object.fromEntries(ids.map((id) => [id, wanted[id]])) }),
  };
  const names = [...Object.keys(lacks).filter((name) => name !== "extensions"), ...ids];
  const isUnclear = Object.keys(asked).length === 0 && Object.keys(wanted).length === 0;
  if (names.length === 0 && !isUnclear) {
    const needs = [...Object.keys(asked), ...Object.keys(wanted)].join(" and ");
    const text = `${server} wants ${needs}, which the caller declared and the gateway does not pass on to it. The call was not carried out.`;
    return new UpstreamError("failed", text, { server, delivery: "answered", cause: error });
  }
  const needs = isUnclear ? "something of its user" : names.join(" and ");
  if (isLegacyRevision(revision))
    return new ToolError(`This needs ${needs}, which the client does not offer.`, { cause: error });
  const isWhole = names.length === Object.keys(asked).length + Object.keys(wanted).length;
  if (isUnclear || isWhole) return error;
  return missingCapability(lacks as ClientCapabilities);
}

type Members = { readonly [name: string]: unknown };

function isMap(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The members that a map of capabilities does not have. */
function without(wanted: Members, declared: object): Members {
  const rest = Object.entries(wanted).flatMap(([name, more]): (readonly [string, unknown])[] => {
    const own = (declared as Members)[name];
    if (!isMap(own)) return [[name, more]];
    const inner = isMap(more) ? without(more, own) : {};
    return Object.keys(inner).length === 0 ? [] : [[name, inner]];
  });
  return Object.fromEntries(rest);
}

/**
 * A legacy server's refusal to act before the user has visited some pages, as questions to a modern caller. The server
 * has done nothing, so the retry makes the request anew.
 */
export function toPageQuestions(
  error: unknown,
  capabilities: ClientCapabilities,
  server: string,
): InputRequired | undefined {
  const asks = capabilities.elicitation?.url === undefined ? undefined : askVisits(pagesOf(error) ?? []);
  return asks && wrapState({ kind: "input_required", asks, state: again }, server);
}

/**
 * The answer to a caller that comes back to a parked call that is no longer there. The server had begun to work on it, and
 * how far it came is unknown.
 */
export function abandonedCall(server: string, why: string): UpstreamError {
  const text =
    `The call that waited for these answers is gone: ${why}. ${server} had begun to work on it, and whether it carried it ` +
    "out is unknown. The call was not made again: make the request anew, without requestState, if it may be carried out twice.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

/** The answer to a caller that asks for a task of a replica that is gone. */
export function abandonedTask(server: string): UpstreamError {
  const text =
    `The replica of the gateway that had this task has ended. ${server} had begun to work on it, and it is unknown whether it ` +
    "finished. Call the tool again if it is safe to run it twice.";
  return new UpstreamError("abandoned", text, { server, delivery: "outcome_unknown" });
}

/** Why a call is not in the table, as far as that can be known. */
export const notParked =
  "its caller came back too late, or the gateway or the server was restarted meanwhile";
