import type { Message } from "./raw-http.ts";

/** The token under which a request wants its progress. */
export function progressTokenOf({ params }: Message): unknown {
  return (params?.["_meta"] as { readonly progressToken?: unknown } | undefined)?.progressToken;
}
