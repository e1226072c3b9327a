import type { Ask } from "../../mcp/types.ts";

/** A legacy server's question as a modern client knows it: without what names it on the server's own hop. */
export function toModernAsk(ask: Ask): Ask {
  if (ask.method === "roots/list") return { method: ask.method };
  const { _meta: _, task: __, ...params } = ask.params;
  if (ask.method !== "elicitation/create" || params["mode"] !== "url") return { ...ask, params };
  const { elicitationId: ___, ...page } = params;
  return { ...ask, params: page };
}
