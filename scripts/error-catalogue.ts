import type * as publicNames from "../packages/junctor/src/index.ts";

/** What an error means, and what to do about it. */
interface CatalogueEntry {
  readonly meaning: string;
  readonly advice: string;
}

type PublicNames = typeof publicNames;

/** The codes of an error class; never for anything else. */
type CodesOf<Value> = Value extends abstract new (...args: never) => infer Thrown
  ? Thrown extends Error & { readonly code: infer Code extends string }
    ? Code
    : never
  : never;

/** An entry for each code of each error class: one that is missing, or that no class has, does not compile. */
type Catalogue = {
  readonly [Name in keyof PublicNames as [CodesOf<PublicNames[Name]>] extends [never] ? never : Name]: {
    readonly [Code in CodesOf<PublicNames[Name]>]: CatalogueEntry;
  };
};

/** Every code of every error, for people who look one up. `docs/reference/errors.md` is made from it. */
export const errorCatalogue: Catalogue = {
  RpcError: {
    "rpc.parse": {
      meaning: "What was sent is not JSON.",
      advice: "Send one JSON object in UTF-8; the message says at which byte it went wrong.",
    },
    "rpc.invalid_request": {
      meaning: "It is JSON but no JSON-RPC request, or it came to the wrong place.",
      advice: "Check the envelope (`jsonrpc`, `id`, `method`), the URL and the headers the message names.",
    },
    "rpc.method_not_found": {
      meaning: "The other side does not offer this method.",
      advice: "Look at the capabilities it declared before you call.",
    },
    "rpc.invalid_params": {
      meaning: "The params do not fit the method, or name a tool or prompt that does not exist.",
      advice: "Correct what the message names; list again if it is a name.",
    },
    "rpc.internal": {
      meaning: "The other side failed in a way it does not explain, or has too much to do.",
      advice: "Look into its log; the cause is there.",
    },
    "rpc.too_many": {
      meaning:
        "The caller holds as many calls, streams, sessions or subscriptions as it may, or asked for as many completions as it may in a minute. Nothing was done.",
      advice: "End some of them, or try again after `data.retryAfterMs`; `perCaller` sets the limits.",
    },
    "rpc.overloaded": {
      meaning: "All callers together hold as much as there is, or memory is short. Nothing was done.",
      advice: "Try again after `data.retryAfterMs`, or elsewhere.",
    },
    "rpc.insufficient_scope": {
      meaning: "The token of the caller lacks scopes for what it wants to do. Nothing was done.",
      advice: "Ask for a token with all of `data.scopes`; the header `WWW-Authenticate` says where.",
    },
    "rpc.not_initialized": {
      meaning: "A legacy client asked for something before `initialize`.",
      advice: "Send `initialize` first, then `notifications/initialized`.",
    },
    "rpc.resource_not_found": {
      meaning: "There is no resource at this URI (legacy revisions).",
      advice: "List the resources and templates; read one of those.",
    },
    "rpc.header_mismatch": {
      meaning: "A header of a modern HTTP request is missing or says something else than its body.",
      advice: "Send `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` as the body has them; list the tools again.",
    },
    "rpc.missing_capability": {
      meaning: "The call needs something of the client that it did not declare.",
      advice: "Give the client a handler for it: `elicit`, `elicitUrl`, `sample` or `roots`.",
    },
    "rpc.unsupported_version": {
      meaning: "The two sides speak no common revision of the protocol.",
      advice: "`data.supported` lists what the other side speaks; leave `revision` out to have one found.",
    },
    "rpc.other": {
      meaning: "An error of the other side with a number of its own, or an answer that makes no sense.",
      advice: "Read the message and `rpcCode`; they are the other side's.",
    },
  },
  ToolError: {
    "tool.failed": {
      meaning: "A tool ran and failed, and says so to the model.",
      advice: "Read the message; it is the tool's own. Throw one yourself to tell the model what to try.",
    },
    "tool.refused": {
      meaning: "A middleware refused a call, and says why to the model. The tool was not run.",
      advice: "Read the message; it is the middleware's own.",
    },
    "tool.rate_limited": {
      meaning: "A caller called too often. The tool was not run.",
      advice: "The message says when to try again, and which limit it is.",
    },
    "tool.invalid_arguments": {
      meaning: "The arguments do not fit the tool's schema. The tool was not run.",
      advice: "The message says where and what was expected.",
    },
  },
  NotFoundError: {
    "provider.not_found": {
      meaning: "A provider was asked for a tool, prompt or resource that it does not have.",
      advice: "List what there is; names are exact.",
    },
  },
  AuthorizationError: {
    "auth.login_required": {
      meaning: "The server wants a person to sign in, and no one did, or the access has ended.",
      advice:
        "Run `junctor login` with the server's name or URL, or give `connect` an `open` to sign in with.",
    },
    "auth.insufficient_scope": {
      meaning: "The access that was granted is not enough for the request.",
      advice: "Sign in again; the scopes the server wants are asked for then. `challenge.scopes` has them.",
    },
    "auth.setup": {
      meaning: "The authorization server does not know this client, and registers none by itself.",
      advice: "Make an OAuth app there, with the callback the message names, and give its id as `clientId`.",
    },
    "auth.metadata": {
      meaning:
        "The metadata of the server or of its authorization server is missing, contradicts itself or is at an address that must not be asked.",
      advice: "Tell those who run the server. If only the issuer's name is unusual, give it as `issuer`.",
    },
    "auth.callback": {
      meaning:
        "The answer of the authorization server is not the one to this sign-in. Nothing of it was used.",
      advice: "Begin the sign-in again, and open no links of others meanwhile.",
    },
    "auth.refused": {
      meaning: "The authorization server refused, or the person did.",
      advice: "Read the message: it has the authorization server's words.",
    },
    "auth.unreachable": {
      meaning: "The authorization server did not answer. Access that was granted is kept.",
      advice: "Try again later.",
    },
  },
  ScopeError: {
    "provider.insufficient_scope": {
      meaning: "The token of a caller lacks scopes for what the caller wants to do. Nothing was done.",
      advice: "`scopes` lists all that are needed; a client can ask its user for a token with them.",
    },
  },
  ConnectError: {
    "client.connect": {
      meaning: "A server could not be reached, did not start, or does not speak MCP.",
      advice: "The message says which; for a command, `stderr` has the end of what it wrote.",
    },
  },
  HttpError: {
    "client.http": {
      meaning: "A server answered with an HTTP status that carries no MCP message.",
      advice: "401 and 403: pass `headers`. 404 and 405: check the URL. 5xx: try later.",
    },
  },
  ClosedError: {
    "channel.closed": {
      meaning: "The way to the server ended before the answer came.",
      advice: "`delivery` says whether the request was sent; repeat it only if it was not, or may run twice.",
    },
  },
  SessionExpiredError: {
    "client.session_expired": {
      meaning: "A legacy server forgot the session, and a new one did not help.",
      advice: "Connect again. The request was not carried out.",
    },
  },
  SkillError: {
    "skill.invalid": {
      meaning: "A folder or a listed entry is no skill that can be used.",
      advice:
        "Correct what the message names: the front matter, the name of the folder, or the list of files.",
    },
    "skill.too_large": {
      meaning:
        "A skill has more than 512 files or 16 MiB, or a folder of skills more than is kept in memory.",
      advice: "Split the skill, or serve several folders.",
    },
    "skill.outside": {
      meaning: "A link in a folder of skills leads out of it.",
      advice: "Copy the file into the folder.",
    },
    "skill.unverified": {
      meaning: "A file of a skill has another size, digest or front matter than its skill lists.",
      advice:
        "Do not use it. List the skills again: a server that was edited meanwhile lists the new digests.",
    },
    "skill.unlisted": {
      meaning: "A file was asked for that its skill does not list. Nothing was sent.",
      advice: "Read one of the files in `resources` of the skill.",
    },
  },
  TimeoutError: {
    "client.timeout": {
      meaning:
        "A call was silent for too long (`idle`) or took too long in all (`total`), and was cancelled.",
      advice: "Raise `timeoutMs` or `maxTotalMs`, or have the tool report progress.",
    },
  },
  AbortedError: {
    "client.aborted": {
      meaning: "The caller's own signal gave the request up.",
      advice: "Nothing: that is what you asked for. `cause` is the reason of the signal.",
    },
  },
  ValidationError: {
    "client.validation": {
      meaning:
        "Arguments do not fit the tool's schema (not sent), or its structured output does not (answered).",
      advice: "`issues` says where and what was expected; `validate: false` switches the check off.",
    },
  },
  AuditError: {
    "audit.file": {
      meaning: "Audit records cannot be written.",
      advice: "Name a file in a folder this user may write to; make room on a disk that is full.",
    },
  },
  TlsError: {
    "listen.tls": {
      meaning:
        "The certificate, the key or the authority of `tls` cannot be read, or they do not fit together.",
      advice: "Correct what the message names: each file is PEM, and the key is that of the certificate.",
    },
  },
  BindError: {
    "listen.not_loopback": {
      meaning: "A listener would be reachable by others without authentication.",
      advice: "Listen on 127.0.0.1 or ::1, or give `authenticate`.",
    },
  },
  ConfigError: {
    "config.invalid": {
      meaning: "A config of the gateway cannot be used.",
      advice: "`issues` says all that is wrong, each with its place and what to write instead.",
    },
  },
  SchemaError: {
    "schema.dialect": {
      meaning: "`$schema` names a dialect that cannot be checked.",
      advice: "Use JSON Schema 2020-12, 2019-09 or draft-07.",
    },
    "schema.ref": {
      meaning: "A `$ref` leads out of the document or to nothing; nothing is ever fetched.",
      advice: "Put what it refers to under `$defs`.",
    },
    "schema.too_large": {
      meaning: "The schema has too many bytes.",
      advice: "Make it smaller; `limit` is the most it may have.",
    },
    "schema.too_deep": {
      meaning: "The schema is nested too deeply.",
      advice: "Flatten it; `limit` is the depth it may have.",
    },
    "schema.too_complex": {
      meaning: "The schema has too many parts.",
      advice: "Make it simpler; `limit` is the number of parts it may have.",
    },
    "schema.invalid": {
      meaning: "It is not a valid schema of its dialect.",
      advice: "Correct it at `path`.",
    },
    "schema.no_json_schema": {
      meaning: "A Standard Schema cannot say its own JSON Schema.",
      advice: "Wrap it: `withJsonSchema(schema, json)`.",
    },
    "schema.not_object": {
      meaning: 'The root of an input schema is not `type: "object"`, which the protocol wants.',
      advice: "Wrap the value in an object.",
    },
    "schema.exhausted": {
      meaning: "Checking one value took too much time or stack.",
      advice: "Look for a pattern that backtracks, or for recursion without end.",
    },
  },
  JsonError: {
    "json.syntax": { meaning: "It is not JSON.", advice: "Send one JSON text as RFC 8259 spells it." },
    "json.utf8": { meaning: "It is not UTF-8.", advice: "Encode the text as UTF-8." },
    "json.bom": {
      meaning: "It begins with a byte order mark.",
      advice: "Send the text without one.",
    },
    "json.trailing": {
      meaning: "Something follows the JSON value.",
      advice: "Send exactly one value.",
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
  SealError: {
    "seal.weak_secret": {
      meaning: "The secret is too short to be safe.",
      advice: "Use 32 random bytes, such as `openssl rand -base64 32` prints.",
    },
    "seal.payload": {
      meaning: "A state cannot be written as JSON, so it cannot be sealed.",
      advice: "Put only JSON values into `inputRequired(asks, state)`.",
    },
    "seal.too_large": {
      meaning: "A state is too large to be carried by the client.",
      advice: "Keep the data on the server and put its key into the state.",
    },
  },
  StoreError: {
    "store.unreachable": {
      meaning:
        "The engine with the facts that replicas share cannot be reached. Whether the operation was done is unknown.",
      advice: "See that Valkey or Redis runs where `junctor.store` says; the store connects again by itself.",
    },
    "store.refused": {
      meaning:
        "The engine refused an operation: a wrong password, missing rights, no memory left, or a copy that is read only. Or its certificate is not trusted.",
      advice: "The message has the engine's own words; correct its settings or `junctor.store`.",
    },
    "store.starting": {
      meaning:
        "The engine started a moment ago and may have forgotten who owns what, so nothing is given to a new owner yet.",
      advice: "Try again; after 11 seconds the owners of before are known, or have given up.",
    },
    "store.full": {
      meaning: "The store holds as many facts as it may, or has as many operations underway.",
      advice:
        "Look for what fills it: sessions that are deleted by the hundred thousand, or an engine that hangs.",
    },
    "store.invalid": {
      meaning: "A key, a value, a time or a limit is not one that a store takes.",
      advice: "The message says what was given and what is allowed.",
    },
    "store.client_missing": {
      meaning: "A store was named, and the package `@redis/client` is not installed.",
      advice: "Run `npm install @redis/client@6`.",
    },
  },
  UpstreamError: {
    "upstream.unavailable": {
      meaning: "A server behind the gateway is down or still starting. The call was not sent.",
      advice: "The message says when it is tried again; `junctor check` says what is wrong with it.",
    },
    "upstream.lost": {
      meaning:
        "A server behind the gateway died before it answered. Whether it carried the call out is unknown.",
      advice: "Look at what the call would have changed before you repeat it.",
    },
    "upstream.timeout": {
      meaning: "A server behind the gateway took too long, and the call was cancelled.",
      advice: "Raise `timeoutMs` or `maxTotalMs` of the server in the config.",
    },
    "upstream.busy": {
      meaning:
        "A server behind the gateway has more calls waiting or underway than it may, or the call waited a minute for its turn. The call was not sent.",
      advice:
        'Call less at once. For a server that asks its users, write `"sharing": "perSession"` in the config; with `perSession` or `exclusive`, raise `maxConnections`.',
    },
    "upstream.abandoned": {
      meaning:
        "A call waited for answers of its caller and is gone: the caller came back too late, its key was revoked, or the gateway or the server was restarted. The server had begun to work on it; whether it carried it out is unknown.",
      advice: "Look at what the call would have changed before you make it anew, without `requestState`.",
    },
    "upstream.failed": {
      meaning: "A server behind the gateway refused our request, and not because of the caller.",
      advice: "Check its credentials and its URL in the config; the gateway's log has the server's message.",
    },
  },
  UriTemplateError: {
    "uri_template.invalid": {
      meaning: "It is no URI template of RFC 6570, or uses a form that cannot be matched.",
      advice: "Correct it as the message says.",
    },
    "uri_template.too_long": {
      meaning: "The template, or the URI made from it, is too long.",
      advice: "Shorten it.",
    },
  },
};
