import { defined, suggest } from "@junctor/core/options";
import { readCaps } from "./cap-settings.ts";
import { type ConfigObject, type ConfigValue, refuse, warn } from "./config-value.ts";
import type { ServerConfig } from "./config.ts";
import { readExtensions } from "./extension-settings.ts";
import { readOAuth } from "./oauth-settings.ts";
import type { SandboxConfig } from "./sandbox-config.ts";
import { readSandbox } from "./sandbox-settings.ts";
import { readToolRules } from "./tool-rules.ts";
import {
  type KeyHints,
  readAllowed,
  readAnyText,
  readChoice,
  readFlag,
  readNumber,
  readObjectOrEmpty,
  readTexts,
  refuseUnknownKeys,
  timeRange,
} from "./value-readers.ts";

/** What `junctor.servers.NAME` says. A prefix that is not given depends on the server's name. */
type ServerSettings = Omit<
  ServerConfig,
  "name" | "launch" | "prefix" | "sandbox" | "onlyTools" | "withoutTools"
> & {
  readonly prefix: string | false | undefined;
  /** `false`: none, whatever the defaults say. */
  readonly sandbox: SandboxConfig | false | undefined;
};

/** How each setting is read, and what it is for a server of which the config says nothing. */
const settings: {
  readonly [Key in keyof ServerSettings]: readonly [
    read: (given: ConfigValue) => ServerSettings[Key] | undefined,
    usual: ServerSettings[Key],
  ];
} = {
  start: [(given) => readChoice(given, ["eager", "lazy"]), "eager"],
  sharing: [(given) => readChoice(given, ["shared", "perSession", "exclusive"]), "shared"],
  era: [(given) => readChoice(given, ["modern", "legacy"]), "modern"],
  instances: [(given) => readNumber(given, { min: 1, max: 64, example: 2 }), 1],
  placement: [(given) => readChoice(given, ["single", "each"]), undefined],
  workspace: [(given) => readChoice(given, ["auto", "each", "shared"]), "auto"],
  prefix: [
    (given) => (given.value === false ? false : readAnyText(given, '"gh", or false for none')),
    undefined,
  ],
  startTimeoutMs: time(30_000),
  maxStartMs: time(600_000),
  timeoutMs: time(300_000),
  maxTotalMs: time(1_800_000),
  answerWithinMs: time(30_000),
  maxConnections: [(given) => readNumber(given, { min: 1, max: 1000, example: 8 }), 8],
  idleStopMs: [(given) => readNumber(given, timeRange(600_000)), undefined],
  allow: [(given) => readAllowed(given, '"allow": ["read_*"]'), []],
  deny: [(given) => readTexts(given, '"deny": ["delete_*"]'), []],
  tools: [readToolRules, {}],
  trustHints: [readFlag, false],
  maxResultTokens: [readCaps, undefined],
  audit: [readServerAudit, {}],
  record: [readFlag, false],
  sandbox: [readSandbox, undefined],
  tasks: [(given) => readChoice(given, ["hold", "relay"]), "hold"],
  extensions: [readExtensions, {}],
  oauth: [readOAuth, undefined],
  credentials: [(given) => readChoice(given, ["shared", "perCaller"]), "shared"],
};

function time(usualMs: number): readonly [read: (given: ConfigValue) => number | undefined, usual: number] {
  return [(given) => readNumber(given, timeRange(usualMs)), usualMs];
}

/** The keys of a server's settings. */
export const settingKeys: readonly string[] = Object.keys(settings);

/** Settings that make sense for one server only: two servers with one prefix, renamed tool or extension would collide. */
const ownKeys: readonly string[] = ["prefix", "tools", "extensions", "oauth", "credentials"];

/** The keys of `junctor.defaults`. */
export const defaultKeys: readonly string[] = settingKeys.filter((key) => !ownKeys.includes(key));

const ofOneServer: KeyHints = Object.fromEntries(
  ownKeys.map((key) => [key, `it is said of one server: write "servers": { "NAME": { "${key}": … } }`]),
);

/** Refuses settings of servers that do not exist. */
export function checkServerNames(servers: ConfigObject, names: readonly string[]): void {
  for (const [name, given] of servers.entries()) {
    if (names.includes(name)) continue;
    const list = names.length === 0 ? "there is none" : `write one of ${names.join(", ")}`;
    refuse(given, `is not the name of a server: ${suggest(name, names, list)}`);
  }
}

/** What `junctor.defaults` says of every server that does not say otherwise. */
export function readDefaults(given: ConfigValue): ServerSettings {
  const object = readObjectOrEmpty(given, '"defaults": { "startTimeoutMs": 120000 }');
  refuseUnknownKeys(object, defaultKeys, ofOneServer);
  const defaults = readSettings(object);
  checkTimes(object, defaults);
  return defaults;
}

/** The settings of one server; what it leaves out comes from the defaults. */
export function readServerSettings(given: ConfigValue, defaults: ServerSettings): ServerSettings {
  const object = readObjectOrEmpty(given, '{ "start": "lazy" }');
  refuseUnknownKeys(object, settingKeys);
  const own = readSettings(object, defaults);
  checkTogether(object, own);
  // A default that is for lazy servers says nothing of an eager one.
  return own.start === "eager" ? { ...own, idleStopMs: undefined } : own;
}

/** What `object` says; what it leaves out comes from `base`, or else is as usual. */
function readSettings(object: ConfigObject, base?: ServerSettings): ServerSettings {
  const readOne = <Key extends keyof ServerSettings>(key: Key): ServerSettings[Key] => {
    const [read, usual] = settings[key];
    return (object.has(key) ? read(object.get(key)) : undefined) ?? (base === undefined ? usual : base[key]);
  };
  const keys = Object.keys(settings) as (keyof ServerSettings)[];
  return Object.fromEntries(keys.map((key) => [key, readOne(key)])) as unknown as ServerSettings;
}

function readServerAudit(given: ConfigValue): ServerSettings["audit"] {
  const object = readObjectOrEmpty(given, '{ "arguments": true }');
  refuseUnknownKeys(object, ["arguments"]);
  return defined({ arguments: readFlag(object.get("arguments")) });
}

/** Reports settings that are right alone and wrong together. Only settings of the server itself are reported: defaults are for others too. */
function checkTogether(object: ConfigObject, own: ServerSettings): void {
  const { start, sharing, instances, credentials, oauth } = own;
  if (credentials === "perCaller" && oauth?.grant === "client_credentials")
    refuse(object.get("credentials"), 'does not fit "client_credentials", which is access without a person');
  if (object.has("idleStopMs") && start === "eager")
    refuse(
      object.get("idleStopMs"),
      'is for servers that start with their first use: write "start": "lazy" too',
    );
  if (object.has("maxConnections") && sharing === "shared")
    warn(object.get("maxConnections"), 'is not used while "sharing" is "shared", which has one connection');
  if (object.has("instances") && instances > 1 && sharing !== "shared")
    warn(object.get("instances"), 'is used only while "sharing" is "shared"');
  checkTimes(object, own);
}

function checkTimes(object: ConfigObject, { timeoutMs, maxTotalMs }: ServerSettings): void {
  if (timeoutMs <= maxTotalMs || !(object.has("timeoutMs") || object.has("maxTotalMs"))) return;
  warn(object.get("timeoutMs"), `is never reached: maxTotalMs is ${maxTotalMs}, which is less`);
}
