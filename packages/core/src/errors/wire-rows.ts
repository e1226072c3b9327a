// What a server needs to answer with errors. Every server loads it, so the rows of
// other errors are in table.ts.

export const rpcError = {
  fields: {
    rpcCode: "the number on the wire",
    data: "facts for programs, sent as `error.data`",
    delivery: "`not_sent`, `outcome_unknown` or `answered`",
  },
  codes: {
    "rpc.parse": {
      number: -32700,
      meaning: "What was sent is not JSON.",
      advice: "Send one JSON object in UTF-8; the message says at which byte it went wrong.",
    },
    "rpc.invalid_request": {
      number: -32600,
      meaning: "It is JSON, but not a JSON-RPC request, or it came to the wrong place.",
      advice: "Check the envelope (`jsonrpc`, `id`, `method`), the URL and the headers the message names.",
    },
    "rpc.method_not_found": {
      number: -32601,
      status: 404,
      meaning: "The other side does not offer this method.",
      advice: "Look at the capabilities it declared before you call.",
    },
    "rpc.invalid_params": {
      number: -32602,
      meaning: "The params do not fit the method, or name a tool or prompt that does not exist.",
      advice: "Correct what the message names; list again if it is a name.",
    },
    "rpc.internal": {
      number: -32603,
      meaning: "The other side failed in a way it does not explain, or has too much to do.",
      advice: "Look into its log; the cause is there.",
    },
    "rpc.too_many": {
      number: -32603,
      status: 429,
      meaning:
        "The caller holds as many calls, streams, sessions or subscriptions as it may, or asked for as many completions as it may in a minute. Nothing was done.",
      advice: "End some of them, or try again after `data.retryAfterMs`; `perCaller` sets the limits.",
    },
    "rpc.overloaded": {
      number: -32603,
      status: 503,
      meaning: "All callers together hold as much as there is, or memory is short. Nothing was done.",
      advice: "Try again after `data.retryAfterMs`, or elsewhere.",
    },
    "rpc.key_reused": {
      number: -32602,
      status: 422,
      meaning: "The idempotency key of a call is that of another call of the same caller. Nothing was done.",
      advice: "Use a new key for each call, and the same key for retries of one call alone.",
    },
    "rpc.outcome_unknown": {
      number: -32603,
      status: 409,
      meaning:
        "The call with this idempotency key was begun before, and its end is not known or no longer kept. It was not made again.",
      advice: "Look at what the call would have changed. If it was not carried out, make it with a new key.",
    },
    "rpc.insufficient_scope": {
      number: -32003,
      meaning: "The token of the caller lacks scopes for what it wants to do. Nothing was done.",
      advice: "Ask for a token with all of `data.scopes`; the header `WWW-Authenticate` says where.",
    },
    "rpc.not_initialized": {
      number: -32002,
      meaning: "A legacy client asked for something before `initialize`.",
      advice: "Send `initialize` first, then `notifications/initialized`.",
    },
    "rpc.resource_not_found": {
      number: -32002,
      meaning: "There is no resource at this URI (legacy revisions).",
      advice: "List the resources and templates; read one of those.",
    },
    "rpc.header_mismatch": {
      number: -32020,
      status: 400,
      meaning: "A header of a modern HTTP request is missing or says something else than its body.",
      advice: "Send `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` as the body has them; list the tools again.",
    },
    "rpc.missing_capability": {
      number: -32021,
      status: 400,
      meaning: "The call needs something of the client that it did not declare.",
      advice: "Give the client a handler for it: `elicit`, `elicitUrl`, `sample` or `roots`.",
    },
    "rpc.unsupported_version": {
      number: -32022,
      status: 400,
      meaning: "The two sides speak no common revision of the protocol.",
      advice: "`data.supported` lists what the other side speaks; leave `revision` out to have one found.",
    },
    "rpc.other": {
      number: 0,
      meaning: "An error of the other side with a number of its own, or an answer that makes no sense.",
      advice: "Read the message and `rpcCode`; they are the other side's.",
    },
  },
} as const;

export const jsonError = {
  fields: {
    offset: "the byte at which the text was refused",
    index: "for parsers: the text without its ambiguous keys",
  },
  codes: {
    "json.syntax": {
      meaning: "It is not JSON.",
      advice: "Send one JSON text as RFC 8259 spells it.",
    },
    "json.utf8": {
      meaning: "It is not UTF-8.",
      advice: "Encode the text as UTF-8.",
    },
    "json.bom": {
      meaning: "It begins with a byte order mark.",
      advice: "Send the text without a byte order mark.",
    },
    "json.trailing": {
      meaning: "Something follows the JSON value.",
      advice: "Send exactly one JSON value and nothing after it.",
    },
    "json.depth": {
      meaning: "It is nested too deeply.",
      advice: "Nest less deeply, or raise the depth limit.",
    },
    "json.duplicate_key": {
      meaning: "A key of the envelope occurs twice, so that two readers could understand two things.",
      advice: "Send each key once.",
    },
    "json.case_variant_key": {
      meaning: "A key looks like one of the protocol's but is spelt otherwise (`Method`).",
      advice: "Spell the key exactly as the protocol does.",
    },
    "json.not_an_object": {
      meaning: "An object was needed and something else came.",
      advice: "Pass a JSON object.",
    },
  },
} as const;

/** How an error that is not an `RpcError` crosses the wire. */
export interface Crossing {
  /** It reaches the caller as an error of this code, with the same message. */
  readonly as: keyof typeof rpcError.codes;
  /** Its fields that are sent as `data`. */
  readonly data: readonly string[];
  /** The HTTP status of a modern call, where it is not that of `as`. */
  readonly status?: number;
}

/** An error of a class that is not here reaches a caller as "Internal error", without detail. */
export const crossings: Readonly<
  Record<"NotFoundError" | "ScopeError" | "ToolError" | "UpstreamError", Crossing>
> = {
  // As `rpc.method_not_found` or `rpc.resource_not_found` where the dialect of the server or the revision of the caller wants that.
  NotFoundError: { as: "rpc.invalid_params", data: ["uri"], status: 200 },
  ScopeError: { as: "rpc.insufficient_scope", data: ["code", "delivery", "scopes"], status: 403 },
  ToolError: { as: "rpc.internal", data: [] },
  UpstreamError: { as: "rpc.internal", data: ["code", "server", "delivery"] },
};
