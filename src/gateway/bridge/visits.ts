import { RpcError } from "../../errors/rpc-error.ts";
import { urlElicitationRequired } from "../../mcp/project/ask.ts";
import type { Ask, ClientCapabilities } from "../../mcp/types.ts";
import type { InputRequired } from "../../tools/provider.ts";
import { again, wrapState } from "./wrapped-state.ts";

/**
 * A legacy server's refusal to act before the user has visited some pages, as questions to a modern caller. The server
 * has done nothing, so the retry makes the request anew.
 */
export function toVisits(
  error: unknown,
  capabilities: ClientCapabilities,
  server: string,
): InputRequired | undefined {
  if (!(error instanceof RpcError) || error.rpcCode !== urlElicitationRequired) return undefined;
  if (capabilities.elicitation?.url === undefined) return undefined;
  const { elicitations } = (error.data ?? {}) as { readonly elicitations?: unknown };
  if (!Array.isArray(elicitations) || elicitations.length === 0 || !elicitations.every(isPage))
    return undefined;
  const asks = Object.fromEntries(
    elicitations.map(({ message, url }, index): [string, Ask] => {
      return [`visit-${index + 1}`, { method: "elicitation/create", params: { mode: "url", message, url } }];
    }),
  );
  return wrapState({ kind: "input_required", asks, state: again }, server);
}

interface Page {
  readonly message: string;
  readonly url: string;
}

function isPage(item: unknown): item is Page {
  const { message, url } = (item ?? {}) as Partial<Page>;
  return typeof message === "string" && typeof url === "string";
}
