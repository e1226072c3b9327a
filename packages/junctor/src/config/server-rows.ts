import { resolve, sep } from "node:path";
import { extensionIds, methods } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import type { ServerLaunch } from "./entry-rows.ts";
import {
  allowed,
  anyText,
  as,
  asked,
  atOnce,
  byName,
  choice,
  converted,
  either,
  fitting,
  flag,
  isFlag,
  list,
  ms,
  narrowAllow,
  narrowDeny,
  narrowOn,
  number,
  object,
  type Of,
  readRows,
  restarts,
  row,
  type Rows,
  secret,
  text,
  texts,
  type Type,
} from "./rows.ts";
import {
  type ConfigObject,
  type ConfigValue,
  joinPath,
  type KeyHints,
  readAnyText,
  readObjectOrEmpty,
  readText,
  refuse,
  refuseUnknownKeys,
  toObject,
  warn,
} from "./value-readers.ts";

/** Every model API accepts such a name. */
const toolName: Type<string> = fitting(
  '"find"',
  /^[A-Za-z0-9_-]{1,64}$/,
  "cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -",
);

export const toolRows = {
  name: row({ type: toolName, ...asked, doc: "its new name, the whole of it, without a prefix" }),
  description: row({
    type: anyText('"what the tool does"'),
    ...asked,
    doc: "what models read in place of its description",
  }),
  hide: row({
    type: flag,
    consent: (next, agreed) => (next === true ? next : agreed),
    effect: "live",
    doc: "`true`: callers do not see it",
  }),
};

/** How one tool of a server is changed or left out. */
export interface ToolRule extends Of<typeof toolRows> {}

const tools = converted(
  byName(
    object(toolRows, {
      example: '{ "name": "find" }, { "hide": true } or { "description": "…" }',
      orEmpty: true,
    }),
    '"tools": { "search": { "name": "find" } }',
  ),
  (rules: { readonly [ownName: string]: ToolRule }, given) => {
    const renamed = new Map<string, string>();
    for (const [ownName, { name }] of Object.entries(rules)) {
      if (name === undefined) continue;
      const other = renamed.get(name);
      if (other !== undefined)
        given.findings.issue(
          `${joinPath(given.path, ownName)}.name`,
          `is the new name of ${other} too: write another`,
        );
      renamed.set(name, ownName);
    }
    return rules;
  },
);

/** A tool may be hidden at once; a name or description may contain a variable, or be meant to mislead. */
function narrowTools(
  next: { readonly [ownName: string]: ToolRule },
  agreed: { readonly [ownName: string]: ToolRule },
): { readonly [ownName: string]: ToolRule } {
  const rules = new Map(Object.entries(agreed));
  for (const [name, { hide }] of Object.entries(next))
    if (hide === true) rules.set(name, { ...rules.get(name), hide });
  return Object.fromEntries(rules);
}

const capRange = { min: 500, max: 10_000_000, example: 10_000 };
const isObject = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One cap for all tools, or caps by glob. Below the minimum, the notice alone would be longer. */
export const caps: Type<number | { readonly [glob: string]: number }> = either(
  (value) => !isObject(value),
  number(capRange),
  byName(number(capRange), '{ "*": 10000 }'),
);

const sandboxExample = 'true, or { "network": true, "read": ["./data"], "write": ["./notes"] }';

/** Absolute paths, without a slash at their end. */
const folders = (key: string): Type<readonly string[]> =>
  list(
    as((given) => {
      const { folder = "." } = given.findings.source;
      const path = readText(given, '"./data"');
      return path === undefined ? undefined : resolve(folder, path);
    }),
    `"${key}": ["./data"]`,
  );

export const sandboxRows = {
  network: row({
    type: flag,
    usual: false,
    ...restarts,
    doc: "`true`: the network of this machine, its own addresses included. Without it there is none",
  }),
  read: row({
    type: folders("read"),
    usual: [],
    ...restarts,
    doc: 'files and folders that it may read, relative to the folder of the config. `["/"]`: all that you may',
  }),
  write: row({
    type: folders("write"),
    usual: [],
    ...restarts,
    doc: "files and folders that it may also write",
  }),
  memoryMb: row({
    type: number({ min: 16, max: 1_048_576, example: 512 }),
    ...restarts,
    byDefault: "no limit",
    doc: "memory of each of its processes",
  }),
  processes: row({
    type: number({ min: 1, max: 100_000, example: 64 }),
    ...restarts,
    byDefault: "no limit",
    doc: "how many processes and threads it may have (not counted for root)",
  }),
};

/** The limits of a server's process. Its paths are absolute. */
export interface SandboxConfig extends Of<typeof sandboxRows> {}

/** `true` is a sandbox with nothing but the system in it, `false` no sandbox where the defaults have one. */
const sandbox = either(
  isFlag,
  converted(flag, (isOn): SandboxConfig | false => (isOn ? { network: false, read: [], write: [] } : false)),
  object(sandboxRows, {
    example: sandboxExample,
    check: (settings, given) => {
      const { read, write } = settings;
      warnOfConfig(given.get("write"), write);
      refuseNested(given, [...read, ...write], write);
      return settings;
    },
  }),
);

/** A server that can write the config decides what runs after the next start, outside of every sandbox. */
function warnOfConfig(given: ConfigValue, write: readonly string[]): void {
  const { file, folder } = given.findings.source;
  if (folder === undefined) return;
  const config = resolve(file);
  if (write.some((path) => config === path || isInside(config, path)))
    warn(given, "lets the server write this config: name a folder beside it");
}

/** In a folder that it may write, the server could replace a folder by a link to any other, which its next start would mount. */
function refuseNested(given: ConfigObject, paths: readonly string[], write: readonly string[]): void {
  for (const path of paths)
    if (write.some((folder) => isInside(path, folder)))
      refuse(
        given,
        `names ${path}, which lies in a folder that it may write: leave out the one in the other`,
      );
}

function isInside(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

/** Prefixes of the protocol (2026-07-28, `_meta`). */
const official = /^(?:[^./]+\.)?(?:modelcontextprotocol|mcp)(?:\.[^/]*)?\//i;

/** Extensions that the gateway speaks itself, and those that concern one hop only: how it authenticates, and its server card. */
const ofGateway: ReadonlySet<string> = new Set([
  ...Object.values(extensionIds),
  "io.modelcontextprotocol/oauth-client-credentials",
  "io.modelcontextprotocol/enterprise-managed-authorization",
  "io.modelcontextprotocol/server-card",
]);

/** The words that methods of the protocol begin with. Methods of others begin with a domain. */
const ofProtocol: ReadonlySet<string | undefined> = new Set(
  [...methods.keys(), "sampling/", "elicitation/", "roots/", "notifications/"].map(
    (method) => method.split("/")[0],
  ),
);

/** Whether a glob on methods matches none of the protocol's own. */
function isOpenable(method: string): boolean {
  return /^[a-z0-9.-]+\/./i.test(method) && !ofProtocol.has(method.split("/")[0]) && !official.test(method);
}

const coreTypes: readonly string[] = ["complete", "input_required", "task"];
const maxIdLength = 256;

function opened(example: string, isFit: (text: string) => boolean, problem: string): Type<readonly string[]> {
  const item = converted(text(example), (value, given) => (isFit(value) ? value : refuse(given, problem)));
  return list(item, example);
}

export const extensionRows = {
  methods: row({
    type: opened(
      '["com.example/*"]',
      isOpenable,
      "cannot be opened: write a method that does not begin as those of the protocol, such as com.example/*",
    ),
    usual: [],
    ...restarts,
    doc: "globs on the methods that callers may use",
  }),
  resultTypes: row({
    type: opened(
      '["com.example/chart"]',
      (type) => !coreTypes.includes(type),
      "is a type of the protocol itself: leave it out",
    ),
    usual: [],
    ...restarts,
    doc: "types of results of tools, beside those of the protocol",
  }),
};

/** An extension that the gateway does not know and passes on for one server. */
export interface OpenedExtension extends Of<typeof extensionRows> {}

const extensions = converted(
  byName(
    object(extensionRows, { example: '{ "methods": ["com.example/*"] }', orEmpty: true }),
    '"extensions": { "com.example/maps": {} }',
  ),
  (byId: { readonly [id: string]: OpenedExtension }, given) => {
    const problemOf = (id: string): string | undefined => {
      if (ofGateway.has(id)) return "is an extension that the gateway speaks itself: leave it out";
      if (id !== "" && id.length <= maxIdLength) return undefined;
      return `is not an id of an extension: write 1 to ${maxIdLength} characters, such as com.example/maps`;
    };
    const fit = Object.entries(byId).filter(([id]) => {
      const problem = problemOf(id);
      if (problem !== undefined) given.findings.issue(joinPath(given.path, id), problem);
      return problem === undefined;
    });
    return Object.fromEntries(fit);
  },
);

export const oauthRows = {
  clientId: row({
    type: text('"${CLIENT_ID}"'),
    ...restarts,
    byDefault: "the gateway makes itself known",
    doc: "a client that the authorization server knows, where it registers none by itself",
  }),
  clientSecret: row({
    type: secret('"${CLIENT_SECRET}"'),
    ...restarts,
    byDefault: "none",
    doc: 'its secret: `"${GH_SECRET}"`',
  }),
  privateKey: row({
    type: secret('"${PRIVATE_KEY}"'),
    ...restarts,
    byDefault: "none",
    doc: "instead of a secret: a private key (PKCS #8, PEM) that the client signs with (`private_key_jwt`)",
  }),
  issuer: row({
    type: text('"https://id.example.com"'),
    ...restarts,
    byDefault: "the one that the server names",
    doc: "the authorization server to ask, exactly as it writes itself; also pins the one that a secret is shown to",
  }),
  scopes: row({
    type: texts('"scopes": ["read"]'),
    ...restarts,
    byDefault: "those that the server asks for",
    doc: "the access to ask for instead",
  }),
  resource: row({
    type: flag,
    ...restarts,
    byDefault: "`true`",
    doc: "`false`: the server is not named to its authorization server (RFC 8707), which Entra refuses",
  }),
  grant: row({
    type: choice("authorization_code", "client_credentials"),
    ...restarts,
    byDefault: '`"authorization_code"`',
    doc: '`"client_credentials"`: the gateway signs in as itself, with `clientId` and a secret or key; no person is needed',
  }),
};

/** How access to a server that wants OAuth is obtained; each part has a default. */
export interface OAuthConfig extends Of<typeof oauthRows> {}

const oauth = object(oauthRows, {
  example: '"oauth": { "clientId": "${CLIENT_ID}", "clientSecret": "${CLIENT_SECRET}" }',
  check: (settings, given) => {
    const { clientId, clientSecret, privateKey, issuer, grant } = settings;
    if (issuer !== undefined && !(/^https?:\/\//.test(issuer) && URL.canParse(issuer)))
      refuse(
        given.get("issuer"),
        'is not a URL: write "https://id.example.com", as the issuer writes itself',
      );
    if (clientId === undefined && (clientSecret ?? privateKey) !== undefined)
      refuse(given, 'has a secret and no "clientId": write both');
    if (clientSecret !== undefined && privateKey !== undefined)
      refuse(given.get("privateKey"), 'and "clientSecret" mean the same: keep one of them');
    if (grant === "client_credentials" && (clientSecret ?? privateKey) === undefined)
      refuse(given.get("grant"), 'needs a "clientId", and a "clientSecret" or a "privateKey"');
    return settings;
  },
});

export const recordRows = {
  arguments: row({
    type: flag,
    ...asked,
    byDefault: "as `junctor.audit` says",
    doc: "`true`: the audit records the arguments of its calls; `false`: it does not",
  }),
};

/** The settings of `junctor.servers.NAME`. */
export const serverRows = {
  start: row({
    type: choice("eager", "lazy"),
    usual: "eager",
    ...atOnce,
    doc: '`"lazy"` starts it when a caller lists or calls',
  }),
  sharing: row({
    type: choice("shared", "perSession", "exclusive"),
    usual: "shared",
    ...restarts,
    doc: '`"shared"`: one process of a stdio server for all callers; over HTTP one conversation, and further ones for callers that can be asked or are legacy. `"perSession"`: a process or conversation for every legacy session, and for every name of a modern caller. `"exclusive"`: one for every call while it lasts. [When to use which](gateway.md#connections-and-sharing)',
  }),
  era: row({
    type: choice("modern", "legacy"),
    usual: "modern",
    ...restarts,
    doc: '`"legacy"`: the process of a shared stdio server that knows both eras is spoken to in the legacy one. Servers over HTTP, and processes of one session or caller, are spoken to in the caller\'s era',
  }),
  instances: row({
    type: number({ min: 1, max: 64, example: 2 }),
    usual: 1,
    consent: (next: number, agreed: number) => Math.min(next, agreed),
    effect: "server",
    doc: "how many processes the callers of a shared stdio server are spread over; 1 to 64. Each caller stays with one of them",
  }),
  placement: row({
    type: choice("single", "each"),
    usual: undefined,
    // A server with state of its own must not run twice.
    ...restarts,
    byDefault: "by kind",
    doc: 'how often it runs where the gateway has several [replicas](scale-out.md): `"single"`, once in all, or `"each"`, in each replica. By default `"single"` for stdio servers that are `shared`, else `"each"`. With `instances` above 1, each replica has as many',
  }),
  workspace: row({
    type: choice("auto", "each", "shared"),
    usual: "auto",
    ...restarts,
    doc: 'whether each project has a process of its own behind `junctor attach`: `"auto"`, `"each"` or `"shared"`; see [projects](daemon.md#projects)',
  }),
  prefix: row({
    type: as(
      (given): string | false | undefined =>
        given.value === false ? false : readAnyText(given, '"gh", or false for none'),
      { anyOf: [{ enum: [false] }, { type: ["string", "null"] }] },
    ),
    usual: undefined,
    // Rules for all callers and keys go by names, and a name may contain a variable.
    ...asked,
    isOwn: true,
    byDefault: "its name, with unsafe characters replaced",
    doc: "the beginning of its public names, or `false` for none: then tools have the server's own names, changed only [where clients would refuse them](gateway.md#catalog). Names under the prefix of another server are left out. Up to 32 of `A-Z a-z 0-9 _ . -`, beginning with a letter or digit",
  }),
  startTimeoutMs: row({
    type: ms(30_000),
    usual: 30_000,
    consent: "free",
    effect: "next",
    doc: "how long it may take to start without a sign of progress (text on standard error, use of the processor), and how long a first call waits for it; doubled, up to 8 times, each time a start ran out of it",
  }),
  maxStartMs: row({
    type: ms(600_000),
    usual: 600_000,
    consent: "free",
    effect: "next",
    doc: "how long it may take to start in all, however busy it is",
  }),
  timeoutMs: row({
    type: ms(300_000),
    usual: 300_000,
    ...atOnce,
    doc: "how long the server may be silent during a call; progress resets it, and the time while the user is asked is not counted",
  }),
  maxTotalMs: row({
    type: ms(1_800_000),
    usual: 1_800_000,
    ...atOnce,
    doc: "how long a call may take in all",
  }),
  answerWithinMs: row({
    type: ms(30_000),
    usual: 30_000,
    ...atOnce,
    doc: "how long a caller may take to answer a question of a legacy server while another call waits for its call to end ([less](gateway.md#unanswered-questions) for one that left questions unanswered); 10 minutes while none does",
  }),
  maxConnections: row({
    type: number({ min: 1, max: 1000, example: 8 }),
    usual: 8,
    consent: (next: number, agreed: number) => Math.min(next, agreed),
    effect: "live",
    doc: "with `perSession` and `exclusive`: most processes beside the one for all callers; 1 to 1,000. Further calls wait their turn",
  }),
  idleStopMs: row({
    type: ms(600_000),
    usual: undefined,
    ...atOnce,
    byDefault: "never",
    doc: "lazy only: stops the server after this time without use. Its lists stay",
  }),
  allow: row({
    type: allowed('"allow": ["read_*"]'),
    usual: [],
    consent: narrowAllow,
    effect: "live",
    byDefault: "all",
    doc: "globs on its own tool names: callers see only these",
  }),
  deny: row({
    type: texts('"deny": ["delete_*"]'),
    usual: [],
    consent: narrowDeny,
    effect: "live",
    byDefault: "none",
    doc: "globs on its own tool names: callers do not see these. `deny` wins",
  }),
  tools: row({
    type: tools,
    usual: {},
    consent: narrowTools,
    effect: "live",
    isOwn: true,
    doc: 'by own name: `{ "name": "find" }` renames (the whole name, without a prefix), `{ "description": "…" }` describes, `{ "hide": true }` hides',
  }),
  group: row({
    type: text('"Issues, pull requests and code search."'),
    usual: undefined,
    isOwn: true,
    // A text for models, in which variables are filled in.
    ...asked,
    byDefault: "none",
    doc: 'with `"drafts": ["groups"]`: serves this server as a [group](groups.md) with this description, which tells a model when to open it',
  }),
  trustHints: row({
    type: flag,
    usual: false,
    consent: narrowOn,
    effect: "live",
    doc: "whether tools of this server that say they only read (`readOnlyHint`) may be called by `call_read_tool` of a [profile](#junctorprofilesname) with a search",
  }),
  maxResultTokens: row({
    type: caps,
    usual: undefined,
    ...atOnce,
    byDefault: "none",
    doc: 'about how many tokens a result may be, at least 500: a number for all its tools, or `{ "read_file": 20000, "*": 4000 }` by glob on its own tool names, the first that fits. It holds at every path; what a [profile](#junctorprofilesname) says of a tool counts before it. [More](../guides/small-context.md#results-that-fit)',
  }),
  audit: row({
    type: object(recordRows, { example: '{ "arguments": true }', orEmpty: true }),
    usual: {},
    ...asked,
    byDefault: "as `junctor.audit` says",
    doc: '`{ "arguments": true }`: the audit records the arguments of its calls; `false`: it does not',
  }),
  record: row({
    type: flag,
    usual: false,
    consent: narrowOn,
    effect: "live",
    doc: "`true`: the [admin API](admin-api.md) shows the arguments and results of its last calls, without secrets and redacted as `redact` says",
  }),
  sandbox: row({
    type: sandbox,
    usual: undefined,
    ...restarts,
    byDefault: "none",
    doc: "`true` or an object: what its process may see and use, [see below](#sandbox)",
  }),
  tasks: row({
    type: choice("hold", "relay"),
    usual: "hold",
    // A held call can do no more than one whose caller knows tasks.
    ...atOnce,
    doc: '`"hold"`: a tool that needs a task is called also for callers that know none, and they wait for its result. `"relay"`: they get the server\'s refusal. [More](../guides/long-work-as-a-task.md#through-the-gateway)',
  }),
  extensions: row({
    type: extensions,
    usual: {},
    ...restarts,
    isOwn: true,
    byDefault: "none",
    doc: 'by id: extensions of the protocol that the gateway does not know and passes on between callers and this server: `{ "com.example/maps": { "methods": ["com.example/*"], "resultTypes": ["com.example/chart"] } }`, or `{}` for the declaration alone; [see](gateway.md#extensions)',
  }),
  oauth: row({
    type: oauth,
    usual: undefined,
    ...restarts,
    isOwn: true,
    byDefault: "none",
    doc: "how access to a server that wants OAuth is obtained, where the server does not say enough itself, [see below](#oauth)",
  }),
  credentials: row({
    type: choice("shared", "perCaller"),
    usual: "shared",
    ...restarts,
    isOwn: true,
    doc: 'whose account its calls use, where it wants OAuth: the one of `junctor login` for all callers, or with `"perCaller"` each caller\'s own, [see below](#accounts-of-callers)',
  }),
};

/** What the config says of one server, with the defaults of all. A prefix that is not given depends on the server's name. */
export interface ServerSettings extends Of<typeof serverRows> {}

/** The settings that may stand in `junctor.defaults`: two servers with one prefix, renamed tool or extension would collide. */
export const defaultRows: Rows = Object.fromEntries(
  Object.entries(serverRows as Rows).filter(([, { isOwn }]) => !isOwn),
);
const settingKeys: readonly string[] = Object.keys(serverRows);
const defaultKeys: readonly string[] = Object.keys(defaultRows);

const ofOneServer: KeyHints = Object.fromEntries(
  settingKeys
    .filter((key) => !defaultKeys.includes(key))
    .map((key) => [key, `it is said of one server: write "servers": { "NAME": { "${key}": … } }`]),
);

/** Hints for settings of servers that stand among those of the gateway. */
export const serverHints: KeyHints = Object.fromEntries(
  settingKeys.map((key) => [key, `it is said of servers: ${adviseOn(key)}`]),
);

function adviseOn(key: string): string {
  const one = `write "servers": { "NAME": { "${key}": … } }`;
  return defaultKeys.includes(key) ? `${one}, or "defaults": { "${key}": … } for all` : one;
}

/** Refuses settings of servers that do not exist. */
export function checkServerNames(servers: ConfigObject, names: readonly string[]): void {
  for (const [name, given] of servers.entries()) {
    if (names.includes(name)) continue;
    const one = names.length === 0 ? "there is none" : `write one of ${names.join(", ")}`;
    refuse(given, `is not the name of a server: ${suggest(name, names, one)}`);
  }
}

/** The settings of `junctor.defaults`, for every server that has no own. */
export function readDefaults(given: ConfigValue): ServerSettings {
  const found = readObjectOrEmpty(given, '"defaults": { "startTimeoutMs": 120000 }');
  refuseUnknownKeys(found, defaultKeys, ofOneServer);
  const defaults = readRows(serverRows, found);
  checkTimes(found, defaults);
  return defaults;
}

/** The settings of one server; what it leaves out comes from the defaults. */
export function readServerSettings(given: ConfigValue, defaults: ServerSettings): ServerSettings {
  const found = readObjectOrEmpty(given, '{ "start": "lazy" }');
  refuseUnknownKeys(found, settingKeys);
  const own = readRows(serverRows, found, defaults);
  checkTogether(found, own);
  // A default for lazy servers does not apply to an eager one.
  return own.start === "eager" ? { ...own, idleStopMs: undefined } : own;
}

/** Reports settings that contradict each other. Only settings of the server itself are reported: defaults are for others too. */
function checkTogether(given: ConfigObject, own: ServerSettings): void {
  const { start, sharing, instances, credentials } = own;
  if (credentials === "perCaller" && own.oauth?.grant === "client_credentials")
    refuse(given.get("credentials"), 'does not fit "client_credentials", which is access without a person');
  if (given.has("idleStopMs") && start === "eager")
    refuse(
      given.get("idleStopMs"),
      'is for servers that start with their first use: write "start": "lazy" too',
    );
  if (given.has("maxConnections") && sharing === "shared")
    warn(given.get("maxConnections"), 'is not used while "sharing" is "shared", which has one connection');
  if (given.has("instances") && instances > 1 && sharing !== "shared")
    warn(given.get("instances"), 'is used only while "sharing" is "shared"');
  checkTimes(given, own);
}

function checkTimes(given: ConfigObject, { timeoutMs, maxTotalMs }: ServerSettings): void {
  if (timeoutMs <= maxTotalMs || !(given.has("timeoutMs") || given.has("maxTotalMs"))) return;
  warn(given.get("timeoutMs"), `is never reached: maxTotalMs is ${maxTotalMs}, which is less`);
}

/** Refuses a placement that its server cannot have. */
export function checkPlacement(
  given: ConfigValue,
  launch: ServerLaunch | undefined,
  sharing: ServerSettings["sharing"],
): void {
  const own = toObject(given)?.get("placement");
  if (own?.value !== "single" || launch?.kind !== "command" || sharing === "shared") return;
  const advice = 'processes of one session or call run where these are. Write "each", or leave it out';
  refuse(own, `cannot be "single" while "sharing" is "${sharing}": ${advice}`);
}
