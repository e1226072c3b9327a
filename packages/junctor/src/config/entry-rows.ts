import { resolve } from "node:path";
import { defined, nearest } from "@junctor/core/options";
import { readEnvFile } from "./env-file.ts";
import type { Unset } from "./findings.ts";
import {
  anyText,
  as,
  flag,
  type JsonSchema,
  list,
  narrowNames,
  restarts,
  row,
  type Rows,
  schemaOf,
  text,
  type Type,
} from "./rows.ts";
import {
  type ApiConfig,
  type CommandTool,
  commands,
  type GraphQlConfig,
  graphQl,
  openApi,
} from "./source-rows.ts";
import {
  type ConfigObject,
  type ConfigValue,
  readAnyText,
  readChoice,
  readFlag,
  readObject,
  readText,
  refuse,
  toObject,
  warn,
} from "./value-readers.ts";

// A server as other programs write it, in their files or in ours. What is not understood here is theirs.

/** How one MCP server is reached. */
export type ServerLaunch =
  | (Surroundings & {
      readonly kind: "command";
      readonly command: string;
      readonly args: readonly string[];
    })
  | {
      readonly kind: "http";
      readonly url: string;
      readonly headers: { readonly [name: string]: string };
      /** `sse`: HTTP+SSE of 2024-11-05 and nothing else. */
      readonly transport: "auto" | "sse";
    }
  | SourceLaunch;

/** A server in our own process, made of something that is not a server. */
export type SourceLaunch =
  | (Surroundings & { readonly kind: "commands"; readonly tools: readonly CommandTool[] })
  | {
      readonly kind: "graphql";
      readonly api: GraphQlConfig;
      readonly headers: { readonly [name: string]: string };
    }
  | {
      readonly kind: "openapi";
      readonly api: ApiConfig;
      readonly headers: { readonly [name: string]: string };
    };

/** What a program of this machine runs in. */
interface Surroundings {
  readonly env: { readonly [name: string]: string };
  readonly cwd: string | undefined;
  /** The absolute path of the file with more variables, which are in `env` too. */
  readonly envFile?: string;
}

/** Which tools of a server another client's file leaves, by their exact names. */
interface EntryTools {
  /** Undefined means all. */
  readonly onlyTools: readonly string[] | undefined;
  readonly withoutTools: readonly string[];
}

const allTools: EntryTools = { onlyTools: undefined, withoutTools: [] };

/** The three ways there are, and what other clients call them. */
const ways = ["stdio", "http", "sse"] as const;
type Way = (typeof ways)[number];
const otherWays = new Map<unknown, Way>([
  ["streamable-http", "http"],
  ["streamableHttp", "http"],
  ["streamable_http", "http"],
  ["remote", "http"],
  ["local", "stdio"],
]);

const argsExample = '"args": ["--port", "1"]';
const envExample = '"env": { "NAME": "value" }';
const urlExample = '"https://example.com/mcp"';

export const headers: Type<{ readonly [name: string]: string }> = as(readHeaders, {
  type: ["object", "null"],
  additionalProperties: { type: ["string", "null"] },
});

const env: Type<{ readonly [name: string]: string }> = as(readEnv, {
  type: ["object", "null"],
  additionalProperties: { type: ["string", "number", "null"] },
});

const url: Type<string> = as(readUrl);
const otherUrl = { type: url, ...restarts, deprecated: 'Write "url", as most clients do.' } as const;

/** What other clients write differently is taken as it is. */
const anything: Type<unknown> = as(({ value }) => value, {});
const way: Type<unknown> = as(({ value }) => value, {
  anyOf: [{ enum: [...ways, ...otherWays.keys()] }, { type: ["string", "null"], pattern: "\\$\\{" }],
});

/** Exact names. A list that cannot be applied is a warning, because the file is another program's. */
const onlyNames = { type: anything, consent: narrowNames, effect: "live", byDefault: "all" } as const;
const withoutNames = { type: anything, consent: joinNames, effect: "live", byDefault: "none" } as const;

function joinNames(next: readonly string[], agreed: readonly string[]): readonly string[] {
  return [...next, ...agreed.filter((name) => !next.includes(name))];
}

/** A server that is switched off is gone at once; one that is switched on waits as a new one does. */
const use = { consent: <T>(next: T): T => next, effect: "server", byDefault: "in use" } as const;

const alias = (name: string): string => `another name of \`${name}\``;

/** The settings in an entry of `mcpServers` or `servers` that the gateway acts on. */
export const entryRows = {
  command: row({
    type: text('"command": "npx"'),
    ...restarts,
    doc: "the program to start. It gets [a short list of the gateway's variables](#variables-of-servers) and those of `env`, and no others",
  }),
  args: row({
    type: list(anyText(argsExample), argsExample),
    ...restarts,
    byDefault: "`[]`",
    doc: "its arguments",
  }),
  env: row({
    type: env,
    ...restarts,
    byDefault: "`{}`",
    doc: "variables for the program; strings or numbers",
  }),
  envFile: row({
    type: text('"./.env"'),
    ...restarts,
    doc: "a file of `NAME=VALUE` lines, as dotenv spells them; `env` wins. Relative to the folder of the config",
  }),
  cwd: row({
    type: text('"cwd": "./folder"'),
    ...restarts,
    byDefault: "where the gateway was started",
    doc: 'its folder. Relative to the folder of the config, so `"."` is that folder',
  }),
  url: row({ type: url, ...restarts, doc: "the address of a server over HTTP" }),
  serverUrl: row({ ...otherUrl, doc: alias("url") }),
  httpUrl: row({ ...otherUrl, doc: alias("url") }),
  openapi: row({
    type: openApi,
    ...restarts,
    doc: "[an API](#an-api-as-tools) as a server: the file or the URL of its OpenAPI description, or an object with settings",
  }),
  graphql: row({
    type: graphQl,
    ...restarts,
    doc: "[a GraphQL API](#a-graphql-api-as-tools) as a server: its address, or an object with settings",
  }),
  headers: row({ type: headers, ...restarts, byDefault: "`{}`", doc: "sent with every request to it" }),
  type: row({
    type: way,
    ...restarts,
    byDefault: "found out",
    doc: "`stdio`, `http` (also `streamable-http` and other spellings), or `sse` for HTTP+SSE of 2024-11-05 and nothing else",
  }),
  transport: row({ type: anything, ...restarts, byDefault: "found out", doc: alias("type") }),
  disabled: row({ type: flag, ...use, doc: "`true` switches it off; its `junctor` settings may stay" }),
  enabled: row({ type: flag, ...use, doc: "`false` switches it off" }),
  includeTools: row({
    ...onlyNames,
    doc: 'the exact names of the tools that are there, as other clients write it. `"*"` means all, an empty list no tool. For globs, see `allow` and `deny` below',
  }),
  enabledTools: row({ ...onlyNames, doc: alias("includeTools") }),
  enabled_tools: row({ ...onlyNames, doc: alias("includeTools") }),
  allowedTools: row({ ...onlyNames, doc: alias("includeTools") }),
  tools: row({
    ...onlyNames,
    type: { ...anything, schema: { anyOf: [commands.schema, { type: "array" }] } },
    doc: "[commands of this machine](#commands-as-tools), by the names of their tools; a list is another name of `includeTools`",
  }),
  disabledTools: row({ ...withoutNames, doc: "the exact names of tools that are not" }),
  excludeTools: row({ ...withoutNames, doc: alias("disabledTools") }),
  disabled_tools: row({ ...withoutNames, doc: alias("disabledTools") }),
  excludedTools: row({ ...withoutNames, doc: alias("disabledTools") }),
};

/** What an entry becomes here, and what an edit of it may do. */
export const launchRows: Rows = {
  launch: row({ type: anything, ...restarts, doc: "how the server is reached" }),
  onlyTools: row({ ...onlyNames, doc: entryRows.includeTools.doc }),
  withoutTools: row({ ...withoutNames, doc: entryRows.disabledTools.doc }),
};

/** The schema of an entry. Unknown keys are other programs' own, and nothing is wrong in a server that is switched off. */
export const entrySchema: JsonSchema = {
  type: "object",
  properties: Object.fromEntries(
    Object.entries(entryRows as Rows).map(([key, each]) => [key, schemaOf({ ...each, type: anything })]),
  ),
  if: {
    anyOf: [
      { required: ["disabled"], properties: { disabled: { const: true } } },
      { required: ["enabled"], properties: { enabled: { const: false } } },
    ],
  },
  else: {
    properties: Object.fromEntries(
      Object.entries(entryRows as Rows).map(([key, { type }]) => [key, type.schema]),
    ),
    anyOf: ["command", "url", "serverUrl", "httpUrl", "openapi", "graphql", "tools"].map((key) => ({
      required: [key],
    })),
  },
};

/** One server of the file, used or not. */
export interface ServerEntry {
  readonly name: string;
  readonly path: string;
  /** Undefined when it is switched off, disabled, or wrong. */
  readonly launch: ServerLaunch | undefined;
  /** What to do about variables that it needs and that have no value; undefined when all have one. */
  readonly disabled: string | undefined;
  readonly tools: EntryTools;
}

const example = '{ "command": "npx", "args": ["-y", "a-server"] } or { "url": "https://example.com/mcp" }';
const maxServers = 1000;

/** The servers of both sections, `mcpServers`, as most clients have it, and VS Code's `servers`, in the file's order. */
export function readServerEntries(top: ConfigObject): readonly ServerEntry[] {
  const entries = top.entries().flatMap(([section, given]) => {
    if (section !== "mcpServers" && section !== "servers") return [];
    return readObject(given, `"${section}": { "NAME": { "command": "npx" } }`)?.entries() ?? [];
  });
  if (entries.length > maxServers)
    return refuse(top, `has ${entries.length} servers: ${maxServers} may be there`) ?? [];
  const paths = new Map<string, string>();
  return entries.flatMap(([name, given]) => {
    const { path } = given;
    const other = paths.get(name);
    if (other !== undefined)
      return refuse(given, `has the name of ${other}: rename or remove one of them`) ?? [];
    paths.set(name, path);
    if (name.trim() === "") refuse(given, "has no name: write one between the quotes");
    return [{ name, path, ...readEntry({ ...given, findings: given.findings.ofServer(name) }) }];
  });
}

const unused = { launch: undefined, disabled: undefined, tools: allTools };

function readEntry(given: ConfigValue): Pick<ServerEntry, "launch" | "disabled" | "tools"> {
  const unset: Unset[] = [];
  const findings = given.findings.withUnset((fault) => void unset.push(fault));
  const entry = toObject({ ...given, findings });
  if (entry === undefined) return refuse(given, `must be an object: write ${example}`) ?? unused;
  // Mistakes in a server that is not used do no harm.
  const isOff = readFlag(entry.get("disabled")) === true || readFlag(entry.get("enabled")) === false;
  if (isOff) return unused;
  const launch = readLaunch(entry);
  const tools = readEntryTools(entry);
  if (unset.length === 0) return { launch, disabled: undefined, tools };
  return { launch: undefined, disabled: describeUnset(unset), tools };
}

function describeUnset(unset: readonly Unset[]): string {
  const advice = unset.map((fault) =>
    fault.kind === "unset" ? `set ${fault.name}, or write \${${fault.name}:-}` : fault.message,
  );
  const isOne = unset.length === 1;
  return `${isOne ? "a variable it needs is" : "variables it needs are"} not set: ${advice.join("; ")}`;
}

function readLaunch(entry: ConfigObject): ServerLaunch | undefined {
  const misspelt = checkEntryKeys(entry);
  if (isOfCommands(entry)) return readCommands(entry);
  if (entry.has("openapi")) return readApi(entry, "openapi", openApi);
  if (entry.has("graphql")) return readApi(entry, "graphql", graphQl);
  const found = readWay(entry, misspelt);
  if (found !== undefined) return found === "stdio" ? readCommandLaunch(entry) : readHttpLaunch(entry, found);
  // Reports what else is wrong in it.
  readCommandLaunch(entry);
  readHttpLaunch(entry, "auto");
  return undefined;
}

/** Whether the tools of an entry are commands, and not the names of those that another client leaves. */
function isOfCommands(entry: ConfigObject): boolean {
  const isOther = ["command", "openapi", "graphql", ...urlKeys].some((key) => entry.has(key));
  return !isOther && toObject(entry.get("tools")) !== undefined;
}

function readApi<Kind extends "openapi" | "graphql", Api>(
  entry: ConfigObject,
  kind: Kind,
  type: Type<Api>,
):
  | { readonly kind: Kind; readonly api: Api; readonly headers: { readonly [name: string]: string } }
  | undefined {
  const other = ["command", "openapi", "graphql", ...urlKeys].find((key) => key !== kind && entry.has(key));
  if (other !== undefined)
    return refuse(entry, `has both ${kind} and ${other}: keep the one the server is reached by`);
  for (const unused of ["args", "env", "envFile", "cwd"])
    if (entry.has(unused)) warn(entry.get(unused), "is not used: it is for servers with a command");
  const api = type.read(entry.get(kind));
  const sent = entry.has("headers") ? readHeaders(entry.get("headers")) : {};
  return api === undefined ? undefined : { kind, api, headers: sent };
}

function readCommands(entry: ConfigObject): ServerLaunch | undefined {
  for (const unused of ["args", "headers"])
    if (entry.has(unused)) warn(entry.get(unused), "is not used: each tool has its own command");
  const tools = commands.read(entry.get("tools"));
  const surroundings = readSurroundings(entry);
  if (tools?.length === 0 && entry.findings.issues.length === 0)
    return refuse(entry.get("tools"), 'has no tools: write "tools": { "NAME": { "run": ["git", "log"] } }');
  return tools === undefined ? undefined : { kind: "commands", tools, ...surroundings };
}

/** Where the URL may stand: clients disagree. */
export const urlKeys: readonly string[] = ["url", "serverUrl", "httpUrl"];

/** Undefined when that is not clear, which has been reported then. */
function readWay(entry: ConfigObject, misspelt: ReadonlySet<string>): "stdio" | "auto" | "sse" | undefined {
  const urlKey = urlKeys.find((key) => entry.has(key));
  const hasCommand = entry.has("command");
  if (hasCommand && urlKey !== undefined)
    return refuse(entry, `has both command and ${urlKey}: keep the one the server is reached by`);
  if (!hasCommand && urlKey === undefined) {
    // A misspelt key has been reported.
    const isReported = misspelt.has("command") || urlKeys.some((key) => misspelt.has(key));
    return isReported ? undefined : refuse(entry, `has neither command nor url: write ${example}`);
  }
  const declared = readDeclared(entry);
  if (declared === "wrong") return undefined;
  if (declared !== undefined && (declared.way === "stdio") !== hasCommand) {
    const [has, right] = hasCommand ? ["command", "stdio"] : ["url", "http"];
    return refuse(declared.given, `does not fit a server with a ${has}: write "${right}", or leave it out`);
  }
  if (hasCommand) return "stdio";
  return declared?.way === "sse" ? "sse" : "auto";
}

/** What `type` says, or `transport`, its other name. */
function readDeclared(
  entry: ConfigObject,
): { readonly way: Way; readonly given: ConfigValue } | "wrong" | undefined {
  // Some clients have an object there, for themselves.
  const key = entry.has("type") ? "type" : "transport";
  const given = entry.get(key);
  if (!entry.has(key) || (key === "transport" && typeof given.value !== "string")) return undefined;
  const declared = otherWays.get(given.value) ?? readChoice(given, ways);
  return declared === undefined ? "wrong" : { way: declared, given };
}

const keysOf = (type: object): readonly string[] =>
  Object.entries(entryRows as Rows).flatMap(([key, { consent }]) =>
    "consent" in type && consent === type.consent ? [key] : [],
  );

/** The names of an allow list, as clients spell it: Gemini CLI, Copilot, Codex and others. */
const allowKeys = keysOf(onlyNames);

/** The names of a deny list: Windsurf, Roo Code, Kiro, Gemini CLI, Codex and others. */
const denyKeys = keysOf(withoutNames);

/** Filters that are not understood here. They give a warning, because their author believes that something is hidden. */
const otherFilters: readonly string[] = ["toolFilter", "toolNames", "disabledPrompts", "disabledResources"];

/** The keys that a misspelt one may mean. */
const meantKeys: readonly string[] = Object.keys(entryRows).filter(
  (key) => !allowKeys.includes(key) && !denyKeys.includes(key),
);

/** Reads the filters of tools in an entry. What cannot be applied is a warning: the file is another program's. */
export function readEntryTools(entry: ConfigObject): EntryTools {
  for (const key of otherFilters) if (entry.has(key)) warn(entry.get(key), `is not applied here: ${instead}`);
  const lists = (keys: readonly string[]): readonly (readonly string[])[] =>
    keys.flatMap((key) => {
      if (key === "tools" && isOfCommands(entry)) return [];
      const names = entry.has(key) ? readNames(entry.get(key)) : undefined;
      return names === undefined ? [] : [names];
    });
  const allowed = lists(allowKeys).filter((names) => !names.includes("*"));
  const denied = lists(denyKeys).flat();
  // Of several allow lists, a tool must be in each.
  const [first, ...others] = denied.includes("*") ? [[]] : allowed;
  return {
    onlyTools: first?.filter((name) => others.every((names) => names.includes(name))),
    withoutTools: denied.filter((name) => name !== "*"),
  };
}

const instead = 'write "junctor": { "servers": { "NAME": { "allow": […], "deny": […] } } }';

/** Names of tools. `*` alone means all; a name is never a pattern otherwise. */
function readNames(given: ConfigValue): readonly string[] | undefined {
  const { value } = given;
  if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
    warn(given, `is not a list of names and is not applied here: ${instead}`);
    return undefined;
  }
  const pattern = value.find((name) => name !== "*" && /[*?]/.test(name));
  if (pattern !== undefined)
    warn(given, `has ${JSON.stringify(pattern)}, which is taken as an exact name: ${instead}`);
  return value;
}

/** What other clients keep in their entries, for themselves. */
const foreign = wordsOf(`
  $schema _comment comment comments id name title displayName label description icon icons iconPath iconUrl logo tags
  category categories version registryUrl homepage repository documentation license author metadata gallery source
  sourcePath provider providerUrl installed isActive active
  autoApprove alwaysAllow autoAllow trust trusted alwaysLoad approval permissions
  deferTools defer capabilities roots sampling elicitation notifications instructions
  timeout timeoutMs timeoutSeconds startupTimeout startupTimeoutSec startup_timeout_sec tool_timeout_sec initTimeout
  initializationTimeout connectTimeout requestTimeout toolTimeout callTimeout networkTimeout longRunning
  autoStart autostart autoConnect start_on_launch startOnLaunch lifecycle required retries retry reconnect restart
  dev watchPaths sandbox sandboxEnabled inputs presentation shell runtime platform settings priority scope bundled
  auth oauth oauthClientId oauthScopes authorization authProvider authProviderType oidc scopes targetAudience
  targetServiceAccount headersHelper requestInit bearerTokenEnvVar bearer_token_env_var envHeaders env_http_headers
  http_headers env_vars
`);

function wordsOf(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** Words that mean a key of ours and are not spelt like it. */
const synonyms: { readonly [key: string]: string } = {
  cmd: "command",
  arguments: "args",
  argv: "args",
  environment: "env",
  workingDirectory: "cwd",
  workdir: "cwd",
  uri: "url",
  endpoint: "url",
  baseUrl: "url",
};

/**
 * Looks at unknown keys: one that is nearly ours is a mistake, and any other is probably some client's own. Returns the keys that were
 * meant.
 */
export function checkEntryKeys(entry: ConfigObject): ReadonlySet<string> {
  const allMeant = new Set<string>();
  for (const [key, given] of entry.entries()) {
    if (Object.hasOwn(entryRows, key) || otherFilters.includes(key) || foreign.includes(key)) continue;
    const meant = Object.hasOwn(synonyms, key) ? synonyms[key] : nearest(key, meantKeys);
    if (meant === undefined) {
      warn(given, "is not known here and is not used: remove it if it is yours");
      continue;
    }
    refuse(given, `is not known here: did you mean ${meant}?`);
    allMeant.add(meant);
  }
  return allMeant;
}

/** A server that is started here. */
export function readCommandLaunch(entry: ConfigObject): ServerLaunch | undefined {
  const { findings } = entry;
  if (entry.has("headers")) warn(entry.get("headers"), "is not used: it is for servers with a url");
  const given = entry.get("command");
  const isList = Array.isArray(given.value);
  const command = readText(
    given,
    `"command": "npx"${isList ? ` and what follows it into ${argsExample}` : ""}`,
  );
  const args = entry.has("args") ? (entryRows.args.type.read(entry.get("args")) ?? []) : [];
  if (command !== undefined && args.length === 0 && /^[^/\\]+ /.test(command))
    warn(entry.get("command"), `has spaces in it: write arguments into args, such as ${argsExample}`);
  for (const [index, arg] of args.entries()) {
    const [, name, value] =
      /^--?([\w.-]+)=(.+)$/s.exec(arg) ?? /^--?([\w.-]+)=?$/.exec(args[index - 1] ?? "") ?? [];
    if (name !== undefined) findings.hideSecret({ value: value ?? arg, names: [name], isLikely: false });
  }
  const surroundings = readSurroundings(entry);
  return command === undefined ? undefined : { kind: "command", command, args, ...surroundings };
}

function readSurroundings(entry: ConfigObject): Surroundings {
  const { findings } = entry;
  const base = findings.source.folder;
  const toPath = (path: string | undefined): string | undefined =>
    path === undefined || base === undefined ? path : resolve(base, path);
  const envFile = toPath(readText(entry.get("envFile"), '"./.env"'));
  const fromFile = readEnvFile(entry.get("envFile"), envFile);
  const own = readEnv(entry.get("env"));
  const env = { ...fromFile, ...own };
  for (const [name, value] of Object.entries(fromFile))
    findings.hideSecret({ value, names: [name], isLikely: true });
  for (const [name, value] of Object.entries(own))
    findings.hideSecret({ value, names: [name], isLikely: false });
  const cwd = toPath(readText(entry.get("cwd"), '"cwd": "./folder"'));
  return { env, cwd, ...defined({ envFile }) };
}

function readEnv(given: ConfigValue): { readonly [name: string]: string } {
  const object = readObject(given, envExample);
  const entries: [string, string][] = [];
  for (const [name, at] of object?.entries() ?? []) {
    if (name === "" || /[=\0]/.test(name)) refuse(at, `is not the name of a variable: write ${envExample}`);
    // VS Code takes numbers too.
    const value = typeof at.value === "number" ? String(at.value) : readAnyText(at, '"value"');
    if (value !== undefined) entries.push([name, value]);
  }
  return Object.fromEntries(entries);
}

/** A server that is reached by HTTP. */
export function readHttpLaunch(entry: ConfigObject, transport: "auto" | "sse"): ServerLaunch | undefined {
  const [key = "url", other] = urlKeys.filter((key) => entry.has(key));
  if (other !== undefined) refuse(entry.get(other), `names the URL again: keep ${key} or ${other}`);
  for (const unused of ["args", "env", "envFile", "cwd"])
    if (entry.has(unused)) warn(entry.get(unused), "is not used: it is for servers with a command");
  const url = readUrl(entry.get(key));
  const headers = entry.has("headers") ? readHeaders(entry.get("headers")) : {};
  return url === undefined ? undefined : { kind: "http", url, headers, transport };
}

function readUrl(given: ConfigValue): string | undefined {
  const text = readText(given, urlExample);
  if (text === undefined) return undefined;
  const problem = findUrlProblem(text);
  if (problem !== undefined) return refuse(given, problem);
  // Some services take their key there: ?apiKey=…
  const { searchParams, pathname } = new URL(text);
  for (const [name, value] of searchParams)
    given.findings.hideSecret({ value, names: [name], isLikely: true });
  // A token may stand in the path; the words of a path have no digits, or are short.
  for (const value of pathname.split("/"))
    given.findings.hideSecret({ value, names: [], isLikely: value.length >= 8 && /\d/.test(value) });
  return text;
}

/** Never repeats the URL itself: it may hold a key. */
function findUrlProblem(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return `must begin with http:// or https://: write ${urlExample}`;
  if (!URL.canParse(text)) return `is not a URL: write ${urlExample}`;
  const { username, password } = new URL(text);
  if (username === "" && password === "") return undefined;
  return 'has a name or password in it, which is not sent: write "headers": { "Authorization": "Bearer ${TOKEN}" }';
}

export function readHeaders(given: ConfigValue): { readonly [name: string]: string } {
  const object = readObject(given, '"headers": { "Authorization": "Bearer ${TOKEN}" }');
  const headers: [string, string][] = [];
  const seen = new Set<string>();
  for (const [name, at] of object?.entries() ?? []) {
    if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name))
      refuse(at, "is not the name of a header: use letters, digits and -");
    else if (seen.has(name.toLowerCase()))
      refuse(at, "is written twice, in upper and lower case: keep one of them");
    seen.add(name.toLowerCase());
    const value = readAnyText(at, '"Bearer ${TOKEN}"');
    if (value === undefined) continue;
    hideHeader(name, value, at);
    if (/^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value)) headers.push([name, value]);
    else refuse(at, "has a line break or a character no header can carry: remove it");
  }
  return Object.fromEntries(headers);
}

/** Hides the value, and what follows a scheme: a server may repeat the one without the other. */
function hideHeader(name: string, value: string, { findings }: ConfigValue): void {
  const [, credentials] = /^[A-Za-z]+ +(\S+)$/.exec(value) ?? [];
  for (const each of [value, credentials])
    if (each !== undefined) findings.hideSecret({ value: each, names: [name], isLikely: true });
}

/** Whether a server is in our own process. */
export function isSource(launch: ServerLaunch): launch is SourceLaunch {
  return launch.kind !== "command" && launch.kind !== "http";
}

/** What would run or be reached, and by which names its variables or headers are sent. Values of these are not for the log. */
export function outlineOf(launch: ServerLaunch): {
  readonly words: readonly (readonly string[])[];
  readonly names: readonly string[];
} {
  if (launch.kind === "http") return { words: [[launch.url]], names: Object.keys(launch.headers) };
  if (launch.kind === "openapi") {
    const { spec, server } = launch.api;
    const words = server === undefined ? [spec] : [spec, `(asks ${server})`];
    return { words: [[words.join(" ")]], names: Object.keys(launch.headers) };
  }
  if (launch.kind === "graphql") return { words: [[launch.api.server]], names: Object.keys(launch.headers) };
  const names = Object.keys(launch.env);
  if (launch.kind === "command") return { words: [[launch.command, ...launch.args]], names };
  return { words: launch.tools.map(({ run }) => run.flat()), names };
}

/** Whether OAuth may be what a server wants: it has no credentials of its own in its headers. */
export function mayWantOAuth(launch: ServerLaunch): launch is Extract<ServerLaunch, { kind: "http" }> {
  if (launch.kind !== "http") return false;
  return !Object.keys(launch.headers).some((name) => name.toLowerCase() === "authorization");
}
