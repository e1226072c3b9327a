import { resolve } from "node:path";
import { isLoopback } from "@junctor/core/channel";
import { StoreError } from "@junctor/core/errors";
import { isCardName } from "@junctor/core/mcp";
import { nearest } from "@junctor/core/options";
import { type SecretKind, secrets } from "@junctor/server/internal";
import { parseStoreUrl } from "../cluster/index.ts";
import {
  globRows,
  issuers,
  keyExample,
  keys,
  narrowIssuers,
  narrowKeys,
  narrowProfiles,
  narrowRules,
  profiles,
  proofRows,
  rules,
  toHash,
} from "./access-rows.ts";
import { headers } from "./entry-rows.ts";
import {
  as,
  asked,
  atOnce,
  atStart,
  byName,
  choice,
  type Consent,
  converted,
  either,
  fitting,
  flag,
  isText,
  list,
  ms,
  narrowRows,
  number,
  object,
  type Of,
  path,
  row,
  type Rows,
  text,
  type Type,
  usualOf,
} from "./rows.ts";
import { type ConfigValue, readText, refuse } from "./value-readers.ts";

/** The consent of an object: that of each of its settings. */
function each<T extends object>(rows: Rows): Exclude<Consent<T>, string> {
  return (next, agreed) => narrowRows(rows, next, agreed).value;
}

const hostExample = '"127.0.0.1"';
const servedExample = '"mcp.example.com"';
const originExample = '"https://app.example.com"';
const publicExample = '"https://mcp.example.com/mcp"';

/** An address to bind: a name, or one of IPv4 or IPv6. */
const host = fitting(
  hostExample,
  /^(?:[\w.-]+|[\da-f.]*:[\da-f:.]*:[\da-f:.]*(?:%\w+)?)$/i,
  `is not an address: write ${hostExample}, and the port into "port"`,
);
const port = (example: number): Type<number> => number({ min: 0, max: 65_535, example });

/** A value of the `Host` header. */
const servedHosts = list(
  fitting(
    servedExample,
    /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i,
    `is not a host: write ${servedExample} or "mcp.example.com:8443"`,
  ),
  `"allowedHosts": [${servedExample}]`,
);

/** Values of the `Origin` header, which has no path: one with a slash at its end would match nothing. */
function origins(key: string): Type<readonly string[]> {
  const origin = fitting(
    originExample,
    /^[a-z][a-z0-9+.-]*:\/\/[^/?#@\s*]+$/i,
    `is not an origin: write ${originExample}, with nothing after the host and port`,
  );
  return list(origin, `"${key}": [${originExample}]`);
}

/** The URL of the endpoint as clients know it. Tokens are sent to it, so it is encrypted unless it is on this machine. */
const publicUrl = converted(text(publicExample), (value, given) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const isPlain = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!isPlain || (url.protocol !== "https:" && url.protocol !== "http:"))
    return refuse(
      given,
      `is not the URL of the endpoint: write ${publicExample}, with nothing after the path`,
    );
  if (url.protocol === "http:" && !isLoopback(url.hostname.replaceAll(/[[\]]/g, "")))
    return refuse(given, `must begin with https: callers send their keys to it; write ${publicExample}`);
  return url.pathname === "/" ? url.origin : url.href;
});

const pem = { type: path, ...atStart } as const;
const tlsExample = '{ "cert": "server.pem", "key": "server.key" }';

export const tlsRows = {
  cert: row({ ...pem, isRequired: true, doc: "the certificate and its chain, as PEM" }),
  key: row({ ...pem, isRequired: true, doc: "its key, as PEM" }),
  clientCa: row({
    ...pem,
    byDefault: "none",
    doc: "the authorities whose certificates clients may present, as PEM. A client whose certificate one of them signed is the caller `cert:COMMON-NAME`, with its organizational units as groups",
  }),
};

const cardExample = '{ "name": "com.example/gateway", "description": "Tools of Example" }';
const needsDescription = `needs a description: write ${cardExample}`;

export const cardRows = {
  name: row({
    type: as((given) => {
      const name = readText(given, '"com.example/gateway"') ?? "";
      return isCardName(name)
        ? name
        : refuse(given, 'is not the name of a card: write "com.example/gateway"');
    }),
    isRequired: true,
    ...atStart,
    doc: "in reverse order of a domain, such as `com.example/gateway`",
  }),
  title: row({ type: text('"Example"'), ...atStart, byDefault: "none", doc: "for people" }),
  description: row({
    type: text('"Tools of Example"'),
    isRequired: true,
    ...atStart,
    doc: "what the gateway is for",
  }),
  version: row({
    type: text('"1.0.0"'),
    ...atStart,
    byDefault: "that of Junctor",
    doc: "of what it describes",
  }),
};

export const httpRows = {
  host: row({
    type: host,
    ...atStart,
    byDefault: '`"127.0.0.1"`',
    doc: "the address to listen on; `--host` wins. Beyond loopback only with `keys` or `issuers`",
  }),
  port: row({ type: port(7780), ...atStart, byDefault: "7780", doc: "`--port` wins; 0 picks a free one" }),
  allowedHosts: row({
    type: servedHosts,
    usual: [],
    ...atStart,
    doc: 'more values of `Host` to serve: `"mcp.example.com"`, `"192.168.1.5:7780"`',
  }),
  allowedOrigins: row({
    type: origins("allowedOrigins"),
    usual: [],
    ...atStart,
    doc: "origins of web pages that may send",
  }),
  corsOrigins: row({
    type: origins("corsOrigins"),
    usual: [],
    ...atStart,
    doc: "origins of web pages that may read the answers",
  }),
  publicUrl: row({
    type: publicUrl,
    ...atStart,
    byDefault: "none",
    doc: 'the URL that clients know the endpoint by, such as that of a proxy: `"https://mcp.example.com/mcp"`. Its host and its origin are served',
  }),
  tls: row({
    type: object(tlsRows, {
      example: `"tls": ${tlsExample}`,
      missing: `needs a certificate and its key: write ${tlsExample}`,
    }),
    ...atStart,
    byDefault: "none",
    doc: "files, relative to the folder of the config. The endpoint speaks `https` then, and takes renewed files within seconds",
  }),
  serverCard: row({
    type: object(cardRows, { example: `"serverCard": ${cardExample}`, missing: needsDescription }),
    ...atStart,
    byDefault: "none",
    doc: "a card (SEP-2127, a draft) that everyone may read at `/mcp/server-card` and finds by `/.well-known/ai-catalog.json`. Needs `publicUrl`. It names no tools and no servers",
  }),
};

const http = object(httpRows, {
  example: '"http": { "port": 7780 }',
  orEmpty: true,
  check: (settings, given) => {
    if (settings.serverCard !== undefined && settings.publicUrl === undefined)
      refuse(given.get("serverCard"), `needs "publicUrl" beside it: a card says where the endpoint is`);
    return settings;
  },
});

const proof = object(proofRows, {
  example: keyExample,
  rivals: ["env", "sha256"],
  check: (settings, given, isAllKnown) => {
    const sha256 = toHash(settings, given, isAllKnown);
    return sha256 === undefined ? undefined : { sha256 };
  },
});

export const adminRows = {
  host: row({ type: host, ...atStart, byDefault: '`"127.0.0.1"`', doc: "beyond loopback `key` is needed" }),
  port: row({
    type: port(7781),
    ...atStart,
    byDefault: "7781",
    doc: "left out, a free one is taken when 7781 is not free",
  }),
  key: row({
    type: proof,
    ...atStart,
    byDefault: "made at each start",
    doc: '`{ "env": "VARIABLE" }`, or `{ "sha256": "64 hex digits" }`',
  }),
  allowedHosts: row({ type: servedHosts, usual: [], ...atStart, doc: "more values of `Host` to serve" }),
};

/** Where the admin API listens, and its key. */
export interface AdminConfig extends Of<typeof adminRows> {}

const admin: Type<AdminConfig | false> = either(
  (value) => value === false,
  as((): false => false, { enum: [false] }),
  object(adminRows, { example: '"admin": { "port": 7781 }, or false for none' }),
);

const endpointExample = '"http://127.0.0.1:4318/v1/traces"';

export const tracesRows = {
  endpoint: row({
    type: fitting(
      endpointExample,
      /^https?:\/\/[^\s/]+/i,
      `is not an http or https address: write ${endpointExample}`,
    ),
    ...atStart,
    byDefault: "none",
    doc: "the whole address of a collector that takes OTLP/JSON over HTTP",
  }),
  headers: row({ type: headers, usual: {}, ...atStart, doc: "sent with every request to it" }),
  percent: row({
    type: number({ min: 0, max: 100, example: 5 }),
    ...atStart,
    byDefault: "100",
    doc: "of a hundred requests whose callers do not trace, how many are traced",
  }),
  service: row({
    type: text('"junctor"'),
    ...atStart,
    byDefault: '`"junctor"`',
    doc: "`service.name` of the spans",
  }),
};

/** Where spans go, and of which requests. */
export interface TracesConfig extends Of<typeof tracesRows> {}

const fileSize = number({ min: 1024, max: 2 ** 40, example: 67_108_864 });
const fileCount = number({ min: 0, max: 1000, example: 5 });

const accessExample = '"access.jsonl", or "stderr", or { "file": "access.jsonl", "keep": 5 }';

/** A path, also where the config has no folder. */
const ownFile = (written: string): Type<string> =>
  converted(text(written), (value, given) => resolve(given.findings.source.folder ?? ".", value));

export const accessLogRows = {
  file: row({ type: ownFile('"access.jsonl"'), isRequired: true, ...atStart, doc: "where the lines go" }),
  maxBytes: row({
    type: fileSize,
    ...atStart,
    byDefault: "64 MiB",
    doc: "the file is moved to `.1`, `.2`, … before it grows beyond this",
  }),
  keep: row({ type: fileCount, ...atStart, byDefault: "15", doc: "how many old files stay" }),
};

const accessLog: Type<Of<typeof accessLogRows> | "stderr"> = either(
  isText,
  converted(text(accessExample), (value, given) =>
    value === "stderr" ? value : { file: resolve(given.findings.source.folder ?? ".", value) },
  ),
  object(accessLogRows, { example: accessExample, missing: `has no file: write ${accessExample}` }),
);

const auditExample = '"audit.jsonl", or { "file": "audit.jsonl", "keep": 5 }';

export const auditRows = {
  file: row({
    type: path,
    isRequired: true,
    ...asked,
    doc: "where the records go. Only its owner may read it",
  }),
  maxBytes: row({
    type: fileSize,
    ...asked,
    byDefault: "64 MiB",
    doc: "the file is moved to `.1`, `.2`, … before it grows beyond this",
  }),
  keep: row({ type: fileCount, ...asked, byDefault: "15", doc: "how many old files stay" }),
  keepDays: row({
    type: number({ min: 0, max: 3650, example: 1 }),
    ...asked,
    byDefault: "1 where there are keys, else 0",
    doc: "how many days a file is protected from the records of other callers",
  }),
  onFailure: row({
    type: choice("closed", "open"),
    ...asked,
    byDefault: '`"closed"`',
    doc: "what becomes of a call whose record cannot be written; `closed`: it is refused",
  }),
  arguments: row({
    type: flag,
    ...asked,
    byDefault: "`false`",
    doc: "whether arguments are recorded, redacted",
  }),
};

const audit = either(
  isText,
  converted(path, (file): Of<typeof auditRows> => ({ file })),
  object(auditRows, { example: auditExample, missing: `has no file: write ${auditExample}` }),
);

/** The lower of two limits; no limit counts as the highest. */
const lower = (next: number | undefined, agreed: number | undefined): number | undefined =>
  (next ?? Infinity) <= (agreed ?? Infinity) ? next : agreed;

const callLimitRows = {
  callsPerMinute: row({
    type: number({ min: 1, max: 1_000_000, example: 60 }),
    consent: lower,
    effect: "live",
    byDefault: "none",
    doc: "for each caller; tools, resources, prompts and completions count alike. Calls beyond that are refused, and the model hears when to try again",
  }),
  callTimeoutMs: row({
    type: ms(60_000),
    consent: lower,
    effect: "live",
    byDefault: "none",
    doc: "for each call, whatever its server says",
  }),
  strict: row({
    type: flag,
    consent: (next, agreed) => (agreed === true ? agreed : next),
    effect: "live",
    byDefault: "`false`",
    doc: "with a `store`, limits hold for all replicas together. They hold up to a tenth of a caller's burst ahead ([more](scale-out.md#limits-and-revocations)); `true`: the store is asked for each call",
  }),
};

/** How often, and for how long, tools may be called. */
export interface CallLimits extends Of<typeof callLimitRows> {}

export const limitRows = {
  ...callLimitRows,
  tools: row({
    type: byName(
      object(callLimitRows, { example: '{ "callsPerMinute": 60 }', orEmpty: true }),
      '"tools": { "github__*": { "callsPerMinute": 60 } }',
    ),
    ...asked,
    byDefault: "`{}`",
    doc: 'by glob on public names, `{ "callsPerMinute", "callTimeoutMs", "strict" }` for the tools and prompts that fit, and the resources whose URIs do',
  }),
};

type Limits = Of<typeof limitRows>;

/** Whether no limit is higher than the agreed one. */
function isWithin({ tools = {}, ...next }: Limits, agreed: Limits): boolean {
  const { tools: agreedTools = {}, ...general } = agreed;
  const own = new Map(Object.entries(agreedTools));
  const nextTools = new Map(Object.entries(tools));
  // The time limit of a tool counts instead of the general one.
  const added = [...nextTools]
    .filter(([glob]) => own.get(glob)?.callTimeoutMs === undefined)
    .map(([, { callTimeoutMs = 0 }]) => callTimeoutMs);
  return (
    isLower(next, general) &&
    [...own].every(([glob, limits]) => isLower(nextTools.get(glob) ?? {}, limits)) &&
    added.every((limitMs) => limitMs <= (agreed.callTimeoutMs ?? Infinity))
  );
}

/** Whether the first has every limit of the second, and no higher one. */
function isLower(one: CallLimits, other: CallLimits): boolean {
  const limits = ["callsPerMinute", "callTimeoutMs"] as const;
  const isAsStrict = other.strict !== true || one.strict === true;
  return isAsStrict && limits.every((key) => (one[key] ?? Infinity) <= (other[key] ?? Infinity));
}

const usualUnread = 64 * 1024 * 1024;

/** What one caller may hold; `usual` applies where the config says nothing, if it is one number. */
function holding(doc: string, byDefault: string, usual: number) {
  return row({
    type: number({ min: 1, max: 1_000_000, example: 100 }),
    // Without an agreed number, more than the usual one loosens.
    consent: (next: number | undefined, agreed: number | undefined) =>
      (next ?? usual) <= (agreed ?? usual) ? next : agreed,
    effect: "live",
    byDefault,
    doc,
  });
}

export const perCallerRows = {
  calls: holding("calls underway over HTTP", "4,096", 4096),
  streams: holding("streams that stay open", "most of what is left", Infinity),
  sessions: holding("legacy sessions in memory", "most of what is left", Infinity),
  subscriptions: holding("resources it is told of when they change", "4,096", 4096),
  completionsPerMinute: holding("completions it may ask for in a minute", "600", 600),
  parked: holding("calls that wait for its answers", "1,024", 1024),
  unreadBytes: row({
    type: fileSize,
    consent: (next: number | undefined, agreed: number | undefined) =>
      (next ?? usualUnread) <= (agreed ?? usualUnread) ? next : agreed,
    effect: "live",
    byDefault: "64 MiB",
    doc: "bytes of answers over HTTP that it has not read",
  }),
};

const idempotencyRows = {
  keepMs: row({
    type: number({ min: 1000, max: 604_800_000, example: 3_600_000 }),
    usual: 3_600_000,
    ...atStart,
    doc: "how long the end of a call is kept for retries; 1,000 to 604,800,000",
  }),
  maxKeys: row({
    type: number({ min: 4, max: 1_000_000, example: 65_536 }),
    usual: 65_536,
    ...atStart,
    doc: "most keys that are kept. One caller may have a quarter of them; further calls with a key are refused",
  }),
  maxBytes: row({
    type: number({ min: 1024, max: 4_294_967_296, example: 67_108_864 }),
    usual: 67_108_864,
    ...atStart,
    doc: "most bytes of all ends that are kept. Of the oldest, only the fact that they ended stays",
  }),
  file: row({
    type: path,
    usual: undefined,
    ...atStart,
    byDefault: "none",
    doc: "where calls with keys are noted, so that a gateway that is killed does not forget them. One process has it; replicas use their `store` instead",
  }),
};

const idempotency = either(
  (value) => value === false,
  as((): false => false, { enum: [false] }),
  object(idempotencyRows, { example: '"idempotency": { "keepMs": 3600000 }, or false', orEmpty: true }),
);

const redactExample = '"/sk-[a-z0-9]+/i"';
const redactions = Object.keys(secrets);

/** The name of a kind of secret, or a regular expression written `/…/flags`. */
const redaction = converted(text(redactExample), (value, given) => {
  const problem = value.startsWith("/") ? findPatternProblem(value) : findNameProblem(value);
  return problem === undefined ? value : refuse(given, problem);
});

/** A redaction of a config as a pattern or a kind of secret. */
export function toRedaction(value: string): RegExp | SecretKind {
  const [, pattern, flags] = split(value) ?? [];
  return pattern === undefined ? (value as SecretKind) : new RegExp(pattern, flags);
}

function split(value: string): readonly string[] | null {
  return /^\/(.+)\/([dgimsuvy]*)$/s.exec(value);
}

function findNameProblem(value: string): string | undefined {
  if (redactions.includes(value)) return undefined;
  const near = nearest(value, redactions);
  const hint =
    near === undefined ? `write a regular expression such as ${redactExample}` : `did you mean "${near}"?`;
  return `is not one of ${redactions.join(", ")}: ${hint}`;
}

function findPatternProblem(value: string): string | undefined {
  if (split(value) === null)
    return `is not a regular expression between slashes: write one such as ${redactExample}`;
  try {
    toRedaction(value);
    return undefined;
  } catch (error) {
    // The message begins with the expression, which may hold what a variable held; the reason is its end.
    const reason = (error as Error).message.split(": ").at(-1);
    return `is not a regular expression (${reason}): write one such as ${redactExample}`;
  }
}

const levels = ["trace", "debug", "info", "warn", "error", "silent"] as const;

export const logRows = {
  level: row({
    type: choice(...levels),
    usual: "info",
    consent: (next, agreed) => (levels.indexOf(next) <= levels.indexOf(agreed) ? next : agreed),
    effect: "live",
    doc: "`trace`, `debug`, `info`, `warn`, `error`, `silent`; `--log-level` wins. `warn` has one line for each cause, such as why a server is down; what repeats is summed up on `info`, ever more rarely. `debug` has a line for each call when it ends",
  }),
};

export const daemonRows = {
  idleMs: row({
    type: ms(15 * 60_000),
    usual: 15 * 60_000,
    ...atStart,
    doc: "the [daemon](daemon.md) of `junctor attach` ends after this long without a client",
  }),
};

const lockModes = ["off", "warn", "enforce"] as const;
const lockExample = '"enforce", or { "mode": "enforce", "skip": ["resources"] }';

export const lockRows = {
  mode: row({
    type: choice(...lockModes),
    isRequired: true,
    ...asked,
    byDefault: '`"off"`',
    doc: "`warn` tells of definitions that are not approved, `enforce` also holds them back",
  }),
  file: row({
    type: path,
    ...asked,
    byDefault: "`junctor.lock`",
    doc: "relative to the folder of the config",
  }),
  skip: row({
    type: list(choice("prompts", "resources", "templates", "instructions"), '"skip": ["resources"]'),
    usual: [],
    ...asked,
    doc: "kinds of things that need no approval",
  }),
};

/** Whether definitions must be the ones that a person approved. */
export interface LockConfig extends Omit<Of<typeof lockRows>, "mode" | "file"> {
  readonly mode: "warn" | "enforce";
  /** The path of the lock file. */
  readonly file: string;
}

/** The lock is beside the config unless that names another file. */
const lock: Type<LockConfig> = converted(
  either(
    isText,
    converted(choice(...lockModes), (mode): Of<typeof lockRows> => ({ mode, skip: [] })),
    object(lockRows, { example: lockExample, missing: `has no mode: write ${lockExample}` }),
  ),
  ({ mode, file, skip }, given) => {
    const beside = resolve(given.findings.source.folder ?? ".", "junctor.lock");
    return mode === "off" ? undefined : { mode, file: file ?? beside, skip };
  },
);

const trunkExample = '"trunk": { "host": "10.0.0.5", "port": 7790 }';

export const trunkRows = {
  host: row({ type: host, isRequired: true, ...atStart, doc: "the address to listen on" }),
  port: row({ type: port(7790), isRequired: true, ...atStart, doc: "0 for any that is free" }),
  advertise: row({
    type: host,
    ...atStart,
    byDefault: "`host`",
    doc: 'the host that the others use; needed with `"host": "0.0.0.0"`',
  }),
};

const trunk = object(trunkRows, {
  example: trunkExample,
  missing: `needs host and port: write ${trunkExample}`,
  check: (settings, given) =>
    isAnyAddress(settings.host) && settings.advertise === undefined
      ? refuse(given, 'listens on all addresses: write "advertise" too, the one that other replicas use')
      : settings,
});

/** Whether a host means every address of a machine, so that other replicas cannot use it as an address. */
export function isAnyAddress(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

/** The URL of the engine that replicas share. It may contain a password, so it is never shown. */
const store: Type<string> = {
  ...converted(text('"redis://cache.example.com:6379"'), readStore),
  isSecret: true,
};

function readStore(url: string, given: ConfigValue): string | undefined {
  given.findings.hide(url);
  try {
    const { password } = parseStoreUrl(url);
    if (password !== undefined) given.findings.hide(password);
    return url;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return refuse(given, `cannot be used: ${error.message}`);
  }
}

/** The settings of the `junctor` section for the gateway as a whole. */
export const gatewayRows = {
  separator: row({
    type: choice("__", "_", "-", ".", "/"),
    usual: "__",
    ...asked,
    doc: "between prefix and name: `__`, `_`, `-`, `.` or `/`. Only the first three are taken by every model API",
  }),
  keys: row({
    type: keys,
    usual: [],
    consent: narrowKeys,
    effect: "live",
    byDefault: "none",
    doc: "keys that callers present, [see below](#junctorkeysname)",
  }),
  issuers: row({
    type: issuers,
    usual: [],
    consent: narrowIssuers,
    effect: "live",
    byDefault: "none",
    doc: "issuers of access tokens that callers may present, [see below](#junctorissuersname)",
  }),
  rules: row({
    type: rules,
    usual: [],
    consent: narrowRules,
    effect: "live",
    doc: "rules with conditions over the caller: [who may do what](../guides/who-may-do-what.md)",
  }),
  profiles: row({
    type: profiles,
    usual: [],
    consent: narrowProfiles,
    effect: "live",
    byDefault: "none",
    doc: "parts of all this at paths of their own, [see below](#junctorprofilesname)",
  }),
  allow: row({ ...globRows.allow, usual: [], doc: "globs on what all callers may use, [see below](#globs)" }),
  deny: row({ ...globRows.deny, usual: [], doc: "globs on what no caller may use. `deny` wins" }),
  middleware: row({
    type: list(path, '"middleware": ["./mine.mjs"]'),
    usual: [],
    ...asked,
    doc: "files of [modules](../guides/write-a-middleware.md#a-module-for-the-gateway), relative to the folder of the config; outermost first",
  }),
  audit: row({
    type: audit,
    usual: undefined,
    ...asked,
    byDefault: "none",
    doc: '`"audit.jsonl"`, or an object: a record of each call, [see below](#the-audit-file)',
  }),
  limits: row({
    type: object(limitRows, { example: '"limits": { "callsPerMinute": 60 }', orEmpty: true }),
    usual: {},
    consent: (next: Limits, agreed: Limits) => (isWithin(next, agreed) ? next : agreed),
    effect: "live",
    doc: "how often, and for how long, callers may call",
  }),
  perCaller: row({
    type: object(perCallerRows, { example: '"perCaller": { "calls": 100 }', orEmpty: true }),
    usual: {},
    consent: each<Of<typeof perCallerRows>>(perCallerRows),
    effect: "live",
    doc: "most that one caller may hold or ask for. Whatever the numbers, [no caller takes the last of anything](http.md#limits)",
  }),
  idempotency: row({
    type: idempotency,
    usual: usualOf(idempotencyRows),
    ...atStart,
    byDefault: "in memory",
    doc: "what is kept of calls that come with an idempotency key, so that a retry does not run twice: [safe to retry](../guides/safe-to-retry.md). `false`: keys are not heeded",
  }),
  redact: row({
    type: list(redaction, `"redact": [${redactExample}]`),
    usual: [],
    // A regular expression can be made to take forever.
    consent: (next: readonly string[], agreed: readonly string[]) => [
      ...next.filter((kind) => agreed.includes(kind) || !kind.startsWith("/")),
      ...agreed.filter((kind) => !next.includes(kind)),
    ],
    effect: "live",
    doc: 'the kinds of secrets that are replaced by `[redacted]`, in results of every kind, in titles and descriptions of lists, and in instructions; a thing whose name matches is left out: `email`, `credit-card`, `aws-key`, `github-token`, `jwt`, `private-key`, `bearer`, `openai-key`, or `"/…/flags"`',
  }),
  drafts: row({
    type: list(choice("groups"), '"drafts": ["groups"]'),
    usual: [],
    ...atStart,
    byDefault: "none",
    doc: 'drafts of the protocol that are tried: `"groups"` asks servers for [groups](groups.md) and serves them to callers that declare the draft',
  }),
  http: row({
    type: http,
    usual: usualOf(httpRows),
    ...atStart,
    byDefault: "on loopback",
    doc: "where the gateway listens, and for whom",
  }),
  admin: row({
    type: admin,
    usual: undefined,
    ...atStart,
    byDefault: "on loopback",
    doc: "where the [admin API](admin-api.md) listens, and its key. `false`: there is no admin API",
  }),
  traces: row({
    type: object(tracesRows, { example: `"traces": { "endpoint": ${endpointExample} }` }),
    usual: undefined,
    ...atStart,
    byDefault: "none",
    doc: "where spans go, as OTLP/JSON over HTTP. The `OTEL_*` variables fill in the rest, [see](../guides/see-your-gateway.md#traces)",
  }),
  accessLog: row({
    type: accessLog,
    usual: undefined,
    ...atStart,
    byDefault: "none",
    doc: 'one line of JSON for each request: `"stderr"`, a file, or an object',
  }),
  log: row({
    type: object(logRows, { example: '"log": { "level": "debug" }', orEmpty: true }),
    usual: usualOf(logRows),
    consent: each<Of<typeof logRows>>(logRows),
    effect: "live",
    doc: "what is logged",
  }),
  daemon: row({
    type: object(daemonRows, { example: `"daemon": { "idleMs": ${15 * 60_000} }`, orEmpty: true }),
    usual: usualOf(daemonRows),
    ...atStart,
    doc: "the process behind `junctor attach`",
  }),
  firstListMs: row({
    // A cold `npx` takes seconds; many clients list once and never again.
    type: number({ min: 0, max: 600_000, example: 20_000 }),
    usual: 20_000,
    ...atOnce,
    doc: "how long the first list waits for servers that are still starting; 0 to 600,000",
  }),
  maxStarts: row({
    type: number({ min: 1, max: 64, example: 4 }),
    usual: undefined,
    ...atOnce,
    byDefault: "by cores",
    doc: "how many servers start at the same time; 1 to 64",
  }),
  history: row({
    type: flag,
    usual: true,
    ...atStart,
    doc: "whether the admin API keeps the last calls in memory (at most 30 MB), and counters by hour in the state folder for 30 days",
  }),
  remember: row({
    type: flag,
    usual: true,
    ...atStart,
    doc: "whether the gateway remembers on disk what each server listed last",
  }),
  lock: row({
    type: lock,
    usual: undefined,
    ...asked,
    byDefault: '`"off"`',
    doc: '`"warn"` or `"enforce"`, or an object: definitions must be the ones that you [approved](../guides/pin-tools.md) with `junctor trust`',
  }),
  store: row({
    type: store,
    usual: undefined,
    ...atStart,
    byDefault: "none",
    doc: 'the Valkey or Redis that the replicas of this gateway share: `"redis://[user:password@]host[:port][/database]"`, `rediss://` for TLS, or `unix:///path`. Needs the package `@redis/client` and `JUNCTOR_SECRET`. The variable `JUNCTOR_STORE` wins. Never shown',
  }),
  trunk: row({
    type: trunk,
    usual: undefined,
    ...atStart,
    byDefault: "a port of loopback",
    doc: "where other replicas reach this one. The variable `JUNCTOR_TRUNK=HOST:PORT` wins",
  }),
  drainMs: row({
    // As long as a question to a caller is good for.
    type: number({ min: 0, max: 86_400_000, example: 600_000 }),
    usual: 600_000,
    ...atStart,
    doc: "how long a replica that is asked to stop waits for the answers of callers to its questions; 0 to 86,400,000",
  }),
};

export interface GatewaySettings extends Of<typeof gatewayRows> {}
