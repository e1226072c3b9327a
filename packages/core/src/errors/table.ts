// The table of errors: what each code means, what to do about it, and the fields of its class. A row is written here and nowhere else:
// the types of codes, docs/reference/errors.md and `junctor explain` are derived from it.

export { jsonError, rpcError } from "./wire-rows.ts";

export const toolError = {
  fields: { delivery: "`not_sent`, `outcome_unknown` or `answered`" },
  codes: {
    "tool.failed": {
      meaning: "A tool ran and failed, and says so to the model.",
      advice: "Read the message; it is the tool's own. Throw one yourself to tell the model what to try.",
    },
    "tool.declined": {
      meaning: "The user said no to a question of a tool, or closed it, and the tool did not handle that.",
      advice: "Nothing is wrong. A tool that can do without the answer catches this error around its `ask`.",
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
} as const;

export const notFoundError = {
  fields: {
    what: "`tool`, `prompt`, `resource`, `task`, `skill`, `directory` or `group`",
    id: "the name or URI that was asked for",
  },
  codes: {
    "provider.not_found": {
      meaning: "A provider was asked for a tool, prompt or resource that it does not have.",
      advice: "List what there is; names are exact.",
    },
  },
} as const;

export const scopeError = {
  fields: { scopes: "all scopes that are needed", delivery: "`not_sent`, `outcome_unknown` or `answered`" },
  codes: {
    "provider.insufficient_scope": {
      meaning: "The token of a caller lacks scopes for what the caller wants to do. Nothing was done.",
      advice: "`scopes` lists all that are needed; a client can ask its user for a token with them.",
    },
  },
} as const;

export const upstreamError = {
  fields: { server: "the name of the server", delivery: "`not_sent`, `outcome_unknown` or `answered`" },
  codes: {
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
      advice: "Look at what the call would have changed before you make it again, without `requestState`.",
    },
    "upstream.failed": {
      meaning: "A server behind the gateway refused our request, and not because of the caller.",
      advice: "Check its credentials and its URL in the config; the gateway's log has the server's message.",
    },
  },
} as const;

export const abortedError = {
  fields: { delivery: "`not_sent`, `outcome_unknown` or `answered`" },
  codes: {
    "client.aborted": {
      meaning: "The caller's own signal gave the request up.",
      advice: "Nothing: that is what you asked for. `cause` is the reason of the signal.",
    },
  },
} as const;

export const authorizationError = {
  fields: {
    server: "the URL of the server, without its query",
    reason: "why, without the rest of the message",
    challenge: "what the server demanded",
    delivery: "`not_sent`, `outcome_unknown` or `answered`",
  },
  codes: {
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
      advice: "Tell the operator of the server. If only the issuer's name is unusual, give it as `issuer`.",
    },
    "auth.callback": {
      meaning: "The authorization server's answer does not belong to this sign-in. It was not used.",
      advice: "Begin the sign-in again, and follow no other links meanwhile.",
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
} as const;

export const closedError = {
  fields: { delivery: "`not_sent`, `outcome_unknown` or `answered`" },
  codes: {
    "channel.closed": {
      meaning: "The channel to the server ended before the answer came.",
      advice: "`delivery` says whether the request was sent; repeat it only if it was not, or may run twice.",
    },
  },
} as const;

export const connectError = {
  fields: {
    kind: "`no_program`, `no_folder`, `not_executable`, `exited`, `no_answer` or `other`",
    target: "what was to be reached or started",
    reason: "why, without the rest of the message",
    stderr: "the end of what a child wrote",
    stray: "the first line on its standard output that is not a message",
    delivery: "`not_sent`, `outcome_unknown` or `answered`",
  },
  codes: {
    "client.connect": {
      meaning: "A server could not be reached, did not start, or does not speak MCP.",
      advice: "The message says which; for a command, `stderr` has the end of what it wrote.",
    },
  },
} as const;

export const httpError = {
  fields: {
    status: "the HTTP status",
    url: "what was asked",
    excerpt: "the beginning of the body",
    delivery: "`not_sent`, `outcome_unknown` or `answered`",
  },
  codes: {
    "client.http": {
      meaning: "A server answered with an HTTP status that carries no MCP message.",
      advice: "Pass `headers` for 401 and 403, check the URL for 404 and 405, and try later for 5xx.",
    },
  },
} as const;

export const sessionExpiredError = {
  fields: { delivery: "`not_sent`, `outcome_unknown` or `answered`" },
  codes: {
    "client.session_expired": {
      meaning: "A legacy server forgot the session, and a new one did not help.",
      advice: "Connect again. The request was not carried out.",
    },
  },
} as const;

export const timeoutError = {
  fields: {
    kind: "`idle` or `total`",
    timeoutMs: "the limit that was passed",
    delivery: "`not_sent`, `outcome_unknown` or `answered`",
  },
  codes: {
    "client.timeout": {
      meaning:
        "A call was silent for too long (`idle`) or took too long in all (`total`), and was cancelled.",
      advice: "Raise `timeoutMs` or `maxTotalMs`, or have the tool report progress.",
    },
  },
} as const;

export const validationError = {
  fields: {
    tool: "the name of the tool",
    subject: "`arguments` or `output`",
    issues: "where and what was expected, as JSON pointers",
    delivery: "`not_sent`, `outcome_unknown` or `answered`",
  },
  codes: {
    "client.invalid_arguments": {
      exit: 2,
      meaning: "The arguments do not fit the schema of the tool. They were not sent.",
      advice: "`issues` says where and what was expected; `validate: false` switches the check off.",
    },
    "client.invalid_output": {
      meaning: "The structured output of the tool does not fit its schema.",
      advice: "Tell the author of the tool; `validate: false` switches the check off.",
    },
  },
} as const;

export const schemaError = {
  fields: { path: "where in the schema, as a JSON pointer", limit: "the limit that was passed" },
  codes: {
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
} as const;

export const sealError = {
  fields: {},
  codes: {
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
} as const;

export const skillError = {
  fields: { subject: "the skill or the file, as a URI or path" },
  codes: {
    "skill.invalid": {
      meaning: "A folder or a listed entry is not a skill that can be used.",
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
} as const;

export const uriTemplateError = {
  fields: { template: "the template, cut short" },
  codes: {
    "uri_template.invalid": {
      meaning: "It is not a URI template of RFC 6570, or uses a form that cannot be matched.",
      advice: "Correct it as the message says.",
    },
    "uri_template.too_long": {
      meaning: "The template, or the URI made from it, is too long.",
      advice: "Shorten it.",
    },
  },
} as const;

export const auditError = {
  fields: { path: "the file" },
  codes: {
    "audit.file": {
      meaning: "Audit records cannot be written.",
      advice: "Name a file in a folder this user may write to; make room on a disk that is full.",
    },
  },
} as const;

export const bindError = {
  fields: { host: "the address" },
  exit: 2,
  codes: {
    "listen.not_loopback": {
      meaning: "A listener would be reachable by others without authentication.",
      advice: "Listen on 127.0.0.1 or ::1, or give `authenticate`.",
    },
  },
} as const;

export const configError = {
  fields: { file: "the config", issues: "everything that is wrong: `path` and `message`" },
  exit: 2,
  codes: {
    "config.invalid": {
      meaning: "A config of the gateway cannot be used.",
      advice: "`issues` says all that is wrong, each with its place and what to write instead.",
    },
  },
} as const;

export const storeError = {
  fields: {},
  codes: {
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
      advice: "Try again; after 11 seconds the earlier owners are known, or have given up.",
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
} as const;

export const tlsError = {
  fields: {},
  codes: {
    "listen.tls": {
      meaning:
        "The certificate, the key or the authority of `tls` cannot be read, or they do not fit together.",
      advice: "Correct what the message names: each file is PEM, and the key is that of the certificate.",
    },
  },
} as const;

export const adminError = {
  fields: { status: "the HTTP status" },
  codes: {
    "admin.bad_request": {
      status: 400,
      meaning: "A request to the admin API is malformed.",
      advice: "Correct what the message names; docs/reference/admin-api.md describes each route.",
    },
    "admin.no_key": {
      status: 401,
      meaning: "A request to the admin API has no key, or a wrong one.",
      advice: "Send `Authorization: Bearer KEY`; `junctor open` opens the page with its key.",
    },
    "admin.forbidden": {
      status: 403,
      meaning: "A request to the admin API came from another site, or for another host.",
      advice: "Name the host in `admin.allowedHosts` if it is yours.",
    },
    "admin.not_found": {
      status: 404,
      meaning: "The admin API has no such route, server or record.",
      advice: "Correct the path or the name.",
    },
    "admin.bad_method": {
      status: 405,
      meaning: "The route of the admin API takes another method.",
      advice: "Use a method that the header `Allow` names.",
    },
    "admin.conflict": {
      status: 409,
      meaning: "The gateway is in a state in which it cannot do this.",
      advice: "Read the message; ask for the state again before you repeat it.",
    },
    "admin.too_large": {
      status: 413,
      meaning: "The body of a request to the admin API is too large.",
      advice: "Send less.",
    },
    "admin.not_json": {
      status: 415,
      meaning: "The body of a request to the admin API is not declared as JSON.",
      advice: "Send `Content-Type: application/json`.",
    },
    "admin.too_many": {
      status: 429,
      meaning: "Too many requests to the admin API are underway, or too many had a wrong key.",
      advice: "Try again in a while.",
    },
  },
} as const;

export const usageError = {
  fields: {},
  exit: 2,
  codes: {
    "cli.usage": {
      meaning: "A command line cannot be understood.",
      advice: "The message says what to type; `--help` after a command lists its flags.",
    },
  },
} as const;

export const serverTrouble = {
  fields: {},
  codes: {
    "cli.server_trouble": {
      meaning: "A server of a config cannot be used.",
      advice:
        "The message has the server's last words and what usually helps; `junctor check` tries it again.",
    },
  },
} as const;

export const portError = {
  fields: {},
  codes: {
    "cli.port": {
      meaning: "A port or address cannot be listened on.",
      advice: "Choose another one, with the flag that the message names.",
    },
  },
} as const;

export const runFolderError = {
  fields: {},
  codes: {
    "cli.run_folder": {
      meaning: "The folder of the daemon's socket and key is not safe, or its path is too long.",
      advice: "Do what the message says: others who can enter the folder could take the daemon's place.",
    },
  },
} as const;

export const spliceError = {
  fields: { file: "the file" },
  codes: {
    "cli.splice": {
      meaning: "A file of a client cannot be read or edited safely, so it was left as it is.",
      advice: "Correct the file where the message says, then run the command again.",
    },
  },
} as const;

export const interrupt = {
  fields: { exitCode: "the exit code: 128 and the number of the signal" },
  exit: 130,
  codes: {
    "cli.interrupted": {
      meaning: "A command was ended by Ctrl-C or by a signal.",
      advice: "Nothing: that is what you asked for.",
    },
  },
} as const;
