import { RpcError, rpcCodes } from "../../errors/rpc-error.ts";
import { ToolError } from "../../errors/tool-error.ts";
import { UpstreamError } from "../../errors/upstream-error.ts";
import { askVisits, missingCapability, pagesOf } from "../../mcp/question.ts";
import { isAtLeast, isLegacyRevision } from "../../mcp/revision.ts";
import type { ClientCapabilities } from "../../mcp/types.ts";
import type { CallContext } from "../../tools/context.ts";
import type { InputRequired } from "../../tools/provider.ts";
import { again, wrapState } from "./wrapped-state.ts";

/**
 * A server's error in words its caller's revision has: each of these codes means something to one era only. The others are
 * the same for all.
 */
export function toCallerError(
  error: unknown,
  { revision, capabilities }: Pick<CallContext, "revision" | "capabilities">,
  server: string,
): unknown {
  if (!(error instanceof RpcError)) return error;
  if (error.rpcCode === rpcCodes["rpc.missing_capability"] && isLegacyRevision(revision))
    return new ToolError(`This needs ${describeNeed(error.data)}, which the client does not offer.`, {
      cause: error,
    });
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

function describeNeed(data: unknown): string {
  const { requiredCapabilities } = (data ?? {}) as { readonly requiredCapabilities?: unknown };
  const names = Object.keys(requiredCapabilities ?? {});
  return names.length === 0 ? "something of its user" : names.join(" and ");
}

/**
 * A legacy server's refusal to act before the user has visited some pages, as questions to a modern caller. The server
 * has done nothing, so the retry makes the request anew.
 */
export function toVisits(
  error: unknown,
  capabilities: ClientCapabilities,
  server: string,
): InputRequired | undefined {
  const asks = capabilities.elicitation?.url === undefined ? undefined : askVisits(pagesOf(error) ?? []);
  return asks && wrapState({ kind: "input_required", asks, state: again }, server);
}
