import { isDeepStrictEqual } from "node:util";
import { describeCommand } from "@junctor/client/internal";
import { createGlob } from "@junctor/server/internal";
import { allSecrets, createHide, hideInData, joinSecrets } from "../log/index.ts";
import { narrowIssuers, narrowRules } from "./agreed-access.ts";
import { isOpen } from "./config-access.ts";
import type { CallLimits, DisabledServer, GatewayConfig, KeyConfig, ServerConfig } from "./config.ts";
import type { ProfileConfig } from "./profile-config.ts";

/** What may be used of an edited config before a person agrees to the edit. */
interface AgreedPart {
  readonly config: GatewayConfig;
  /** The settings that wait for a person, each as a path with its change; nothing is cut. */
  readonly waiting: readonly string[];
}

/**
 * Splits an edit: whatever takes something away is used at once; whatever starts, reaches, loads or writes something else
 * than the agreed config, or loosens one of its rules, waits. A tool that may write the file could make any edit.
 * Of what waits, only agreed secrets and values of the environment are hidden: else an edit could hide what it would start.
 */
export function toAgreedPart(
  next: GatewayConfig,
  agreed: GatewayConfig,
  env: { readonly [name: string]: string | undefined } = process.env,
): AgreedPart {
  const waiting: string[] = [];
  const known = new Map(agreed.servers.map((server) => [server.name, server]));
  const servers: ServerConfig[] = [];
  const disabled: DisabledServer[] = [...next.disabled];
  for (const server of next.servers) {
    const { name, prefix, audit } = server;
    const before = known.get(name);
    if (before !== undefined) servers.push(narrow(ofServer, server, before, { path: name, waiting }));
    else {
      waiting.push(`${name} (new: ${describeLaunch(server)})`);
      disabled.push({ name, prefix, tools: {}, audit, reason: waits });
    }
  }
  const rest = narrow(ofGateway, withoutNewWay(next, agreed, waiting), agreed, { path: "junctor", waiting });
  const given = new Set(Object.values(env));
  const hidden = joinSecrets(
    allSecrets(agreed),
    allSecrets(next).filter((secret) => given.has(secret)),
  );
  const hide = createHide(() => hidden);
  // Values of launches that are not used would only be looked for in every line of the log.
  const { secrets, ownSecrets } = waiting.length === 0 ? next : agreed;
  return { config: { ...rest, servers, disabled, secrets, ownSecrets }, waiting: hideInData(waiting, hide) };
}

const waits = 'it is new in the config and waits for you: run "junctor reload"';

/** The value that may be used: the one of the edit, the agreed one, or something in between. */
type Narrow<T> = (next: T, agreed: T) => T;
type Narrowing<T> = { readonly [Key in keyof T]-?: Narrow<T[Key]> };

const asWritten = <T>(next: T): T => next;
const asAgreed = <T>(_next: T, agreed: T): T => agreed;

/** Both lists are of globs; an empty one allows everything. */
const narrowAllow: Narrow<readonly string[]> = (next, agreed) => {
  if (agreed.length === 0) return next;
  const kept = next.filter((glob) => isCovered(glob, agreed));
  return kept.length === 0 ? agreed : kept;
};

const narrowDeny: Narrow<readonly string[]> = (next, agreed) => [
  ...next,
  ...agreed.filter((glob) => !isCovered(glob, next)),
];

/** Every setting must be here, so that none that is added later is loosened by an edit unnoticed. */
const ofServer: Narrowing<ServerConfig> = {
  name: asWritten,
  launch: asAgreed,
  sandbox: asAgreed,
  start: asWritten,
  sharing: asAgreed,
  era: asWritten,
  instances: Math.min,
  // A server with state of its own must not run twice.
  placement: asAgreed,
  workspace: asAgreed,
  // Rules for all callers and keys go by names, and a name may contain a variable.
  prefix: asAgreed,
  startTimeoutMs: asWritten,
  maxStartMs: asWritten,
  timeoutMs: asWritten,
  maxTotalMs: asWritten,
  answerWithinMs: asWritten,
  maxConnections: Math.min,
  idleStopMs: asWritten,
  allow: narrowAllow,
  deny: narrowDeny,
  tools: narrowTools,
  trustHints: (next, agreed) => next && agreed,
  maxResultTokens: asWritten,
  audit: asAgreed,
  record: asAgreed,
  extensions: asAgreed,
  // A held call can do no more than one whose caller knows tasks.
  tasks: asWritten,
  oauth: asAgreed,
  credentials: asAgreed,
  onlyTools: (next, agreed) => (agreed === undefined ? next : (next?.filter(isIn(agreed)) ?? agreed)),
  withoutTools: (next, agreed) => [...next, ...agreed.filter((name) => !next.includes(name))],
};

const ofKey: Narrowing<KeyConfig> = {
  name: asWritten,
  sha256: asAgreed,
  groups: asAgreed,
  scopes: asAgreed,
  allow: narrowAllow,
  deny: narrowDeny,
  profiles: (next, agreed) => {
    if (agreed === undefined) return next;
    const kept = (next ?? []).filter(isIn(agreed));
    return kept.length === 0 ? agreed : kept;
  },
};

const ofProfile: Narrowing<ProfileConfig> = {
  name: asWritten,
  allow: narrowAllow,
  deny: narrowDeny,
  // Texts for models, in which variables are filled in.
  instructions: asAgreed,
  rename: asAgreed,
  pin: asWritten,
  tools: asWritten,
  budget: asWritten,
  maxResultTokens: asWritten,
};

const ofGateway: Narrowing<GatewayConfig> = {
  servers: asWritten,
  disabled: asWritten,
  separator: asAgreed,
  keys: narrowKeys,
  profiles: narrowProfiles,
  issuers: narrowIssuers,
  rules: narrowRules,
  allow: narrowAllow,
  deny: narrowDeny,
  middleware: asAgreed,
  audit: asAgreed,
  limits: (next, agreed) => (isWithin(next, agreed) ? next : agreed),
  // A regular expression can be made to take for ever.
  redact: (next, agreed) => [
    ...next.filter((kind) => agreed.includes(kind) || !kind.startsWith("/")),
    ...agreed.filter((kind) => !next.includes(kind)),
  ],
  // Read at the start only.
  http: asWritten,
  daemon: asWritten,
  admin: asWritten,
  traces: asWritten,
  accessLog: asWritten,
  perCaller: asWritten,
  log: asWritten,
  firstListMs: asWritten,
  maxStarts: asWritten,
  store: asWritten,
  trunk: asWritten,
  drainMs: asWritten,
  lock: asAgreed,
  remembersLists: asWritten,
  secrets: asWritten,
  ownSecrets: asWritten,
  warnings: asWritten,
};

interface Place {
  readonly path: string;
  readonly waiting: string[];
}

function narrow<T extends object>(rules: Narrowing<T>, next: T, agreed: T, { path, waiting }: Place): T {
  const all = Object.keys(rules) as (keyof T & string)[];
  const keys = all.filter((key) => key in next || key in agreed);
  const narrowed = keys.map((key) => {
    const value = rules[key](next[key], agreed[key]);
    if (!isDeepStrictEqual(value, next[key])) waiting.push(describeEdit(path, key, next, agreed));
    return [key, value] as const;
  });
  return Object.fromEntries(narrowed) as T;
}

function describeEdit<T extends object>(path: string, key: keyof T & string, next: T, agreed: T): string {
  if (key !== "launch") return `${path}.${key}`;
  const now = next as unknown as ServerConfig;
  const changed = listChanged(now.launch, (agreed as unknown as ServerConfig).launch);
  return `${path} (${changed.join(", ")}: ${describeLaunch(now)})`;
}

/** The names of members that differ; of variables and headers each by its own name. */
function listChanged(now: object, before: object): readonly string[] {
  const [one, other] = [new Map(Object.entries(now)), new Map(Object.entries(before))];
  return [...new Set([...one.keys(), ...other.keys()])].flatMap((part) => {
    const [value, last] = [one.get(part) as unknown, other.get(part) as unknown];
    if (isDeepStrictEqual(value, last)) return [];
    const isNamed = part === "env" || part === "headers";
    return isNamed ? listChanged(value ?? {}, last ?? {}).map((name) => `${part} ${name}`) : [part];
  });
}

/** What would run or be reached, with the names of its variables or headers, whose values are not for the log. */
function describeLaunch({ launch }: Pick<ServerConfig, "launch">): string {
  const isHttp = launch.kind === "http";
  const names = Object.keys(isHttp ? launch.headers : launch.env).join(", ");
  const notes = [
    isHttp || launch.cwd === undefined ? "" : ` (in ${describeCommand({ command: launch.cwd })})`,
    isHttp || launch.envFile === undefined ? "" : ` (reads ${describeCommand({ command: launch.envFile })})`,
    names === "" ? "" : ` (${isHttp ? "sends" : "sets"} ${names})`,
  ].join("");
  return `${isHttp ? launch.url : describeCommand({ command: launch.command, args: launch.args })}${notes}`;
}

/** A tool may be hidden at once; a name or description may contain a variable, or be meant to mislead. */
function narrowTools(next: ServerConfig["tools"], agreed: ServerConfig["tools"]): ServerConfig["tools"] {
  const rules = new Map(Object.entries(agreed));
  for (const [name, { hide }] of Object.entries(next))
    if (hide === true) rules.set(name, { ...rules.get(name), hide });
  return Object.fromEntries(rules);
}

/** Where callers come with tokens or certificates only, the first key is a new way in. */
function withoutNewWay(next: GatewayConfig, agreed: GatewayConfig, waiting: string[]): GatewayConfig {
  if (agreed.keys.length > 0 || isOpen(agreed) || next.keys.length === 0) return next;
  waiting.push("junctor.keys");
  return { ...next, keys: [] };
}

/** Keys may go. A key that is new, and taking away all of them, would let callers in. */
function narrowKeys(next: readonly KeyConfig[], agreed: readonly KeyConfig[]): readonly KeyConfig[] {
  if (agreed.length === 0) return next;
  const kept = next.flatMap((key) => {
    const before = agreed.find(({ name, sha256 }) => name === key.name && sha256 === key.sha256);
    return before === undefined ? [] : [narrow(ofKey, key, before, { path: "", waiting: [] })];
  });
  return kept.length === 0 ? agreed : kept;
}

/** A profile takes something away, so a new one may be used at once, but for its texts. */
function narrowProfiles(
  next: readonly ProfileConfig[],
  agreed: readonly ProfileConfig[],
): readonly ProfileConfig[] {
  return next.map((profile) => {
    const before = agreed.find(({ name }) => name === profile.name);
    return narrow(ofProfile, profile, before ?? { ...profile, instructions: undefined, rename: {} }, {
      path: "",
      waiting: [],
    });
  });
}

/** Whether no limit is higher than the agreed one. */
function isWithin(
  { tools = {}, ...next }: GatewayConfig["limits"],
  agreed: GatewayConfig["limits"],
): boolean {
  const { tools: agreedTools = {}, ...general } = agreed;
  const own = new Map(Object.entries(agreedTools));
  const given = new Map(Object.entries(tools));
  // The time limit of a tool counts instead of the general one.
  const added = [...given]
    .filter(([glob]) => own.get(glob)?.callTimeoutMs === undefined)
    .map(([, { callTimeoutMs = 0 }]) => callTimeoutMs);
  return (
    isLower(next, general) &&
    [...own].every(([glob, limits]) => isLower(given.get(glob) ?? {}, limits)) &&
    added.every((ms) => ms <= (agreed.callTimeoutMs ?? Infinity))
  );
}

/** Whether the one has each limit of the other, and no higher. */
function isLower(one: CallLimits, other: CallLimits): boolean {
  const keys = ["callsPerMinute", "callTimeoutMs"] as const;
  const isAsStrict = other.strict !== true || one.strict === true;
  return isAsStrict && keys.every((key) => (one[key] ?? Infinity) <= (other[key] ?? Infinity));
}

const isIn =
  (names: readonly string[]) =>
  (name: string): boolean =>
    names.includes(name);

/** Whether every name that fits a glob fits one of the others. A glob without `?` fits the text of each narrower glob. */
function isCovered(glob: string, others: readonly string[]): boolean {
  return others.some((other) => other === glob || (!other.includes("?") && createGlob(other)(glob)));
}
