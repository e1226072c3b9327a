import { nearest } from "../../errors/nearest.ts";
import type { Group, Part } from "./config-value.ts";
import type { ServerConfig } from "./config.ts";
import { given } from "./defined-fields.ts";
import { readToolRules } from "./tool-rules.ts";
import { type KeyHints, refuseUnknownKeys } from "./unknown-keys.ts";
import {
  readAllowed,
  readAnyText,
  readChoice,
  readFlag,
  readGroupOrEmpty,
  readNumber,
  readTexts,
  timeRange,
} from "./value-readers.ts";

/** What `junctor.servers.NAME` says. A prefix that is not given depends on the server's name. */
export type ServerSettings = Omit<
  ServerConfig,
  "name" | "launch" | "prefix" | "onlyTools" | "withoutTools"
> & {
  readonly prefix: string | false | undefined;
};

/** The keys of a server's settings. */
export const settingKeys: readonly string[] = [
  "start",
  "sharing",
  "prefix",
  "startTimeoutMs",
  "maxStartMs",
  "timeoutMs",
  "maxTotalMs",
  "maxConnections",
  "idleStopMs",
  "allow",
  "deny",
  "tools",
  "audit",
];

/** Settings that make sense for one server only: two servers with one prefix, or one renamed tool each, would collide. */
const ownKeys: readonly string[] = ["prefix", "tools"];

/** The keys of `junctor.defaults`. */
export const defaultKeys: readonly string[] = settingKeys.filter((key) => !ownKeys.includes(key));

const ofOneServer: KeyHints = Object.fromEntries(
  ownKeys.map((key) => [key, `it is said of one server: write "servers": { "NAME": { "${key}": … } }`]),
);

/** The settings of a server of which the config says nothing. */
const usual: ServerSettings = {
  start: "eager",
  sharing: "shared",
  prefix: undefined,
  startTimeoutMs: 30_000,
  maxStartMs: 600_000,
  timeoutMs: 300_000,
  maxTotalMs: 1_800_000,
  maxConnections: 8,
  idleStopMs: undefined,
  allow: [],
  deny: [],
  tools: {},
  audit: {},
};

/** Refuses settings of servers that do not exist. */
export function checkServerNames(servers: Group, names: readonly string[]): void {
  for (const [name, { path, reading }] of servers.entries()) {
    if (names.includes(name)) continue;
    const near = nearest(name, names);
    const list = names.length === 0 ? "there is none" : `write one of ${names.join(", ")}`;
    reading.issue(
      path,
      `is not the name of a server: ${near === undefined ? list : `did you mean ${near}?`}`,
    );
  }
}

/** What `junctor.defaults` says of every server that does not say otherwise. */
export function readDefaults(part: Part): ServerSettings {
  const group = readGroupOrEmpty(part, '"defaults": { "startTimeoutMs": 120000 }');
  refuseUnknownKeys(group, defaultKeys, ofOneServer);
  const settings = readSettings(group, usual);
  checkTimes(group, settings);
  return settings;
}

/** The settings of one server; what it leaves out comes from the defaults. */
export function readServerSettings(part: Part, defaults: ServerSettings): ServerSettings {
  const group = readGroupOrEmpty(part, '{ "start": "lazy" }');
  refuseUnknownKeys(group, settingKeys);
  const settings = readSettings(group, defaults);
  checkTogether(group, settings);
  // A default that is for lazy servers says nothing of an eager one.
  return settings.start === "eager" ? { ...settings, idleStopMs: undefined } : settings;
}

function readSettings(group: Group, base: ServerSettings): ServerSettings {
  const { allow, deny, tools } = base;
  return {
    start: readChoice(group.get("start"), ["eager", "lazy"]) ?? base.start,
    sharing: readChoice(group.get("sharing"), ["shared", "perSession", "exclusive"]) ?? base.sharing,
    prefix: readPrefix(group.get("prefix")),
    startTimeoutMs: readNumber(group.get("startTimeoutMs"), timeRange(30_000)) ?? base.startTimeoutMs,
    maxStartMs: readNumber(group.get("maxStartMs"), timeRange(600_000)) ?? base.maxStartMs,
    timeoutMs: readNumber(group.get("timeoutMs"), timeRange(300_000)) ?? base.timeoutMs,
    maxTotalMs: readNumber(group.get("maxTotalMs"), timeRange(1_800_000)) ?? base.maxTotalMs,
    maxConnections:
      readNumber(group.get("maxConnections"), { min: 1, max: 1000, example: 8 }) ?? base.maxConnections,
    idleStopMs: readNumber(group.get("idleStopMs"), timeRange(600_000)) ?? base.idleStopMs,
    allow: group.has("allow") ? readAllowed(group.get("allow"), '"allow": ["read_*"]') : allow,
    deny: group.has("deny") ? readTexts(group.get("deny"), '"deny": ["delete_*"]') : deny,
    tools: group.has("tools") ? readToolRules(group.get("tools")) : tools,
    audit: group.has("audit") ? readServerAudit(group.get("audit")) : base.audit,
  };
}

function readServerAudit(part: Part): ServerSettings["audit"] {
  const group = readGroupOrEmpty(part, '{ "arguments": true }');
  refuseUnknownKeys(group, ["arguments"]);
  return given({ arguments: readFlag(group.get("arguments")) });
}

function readPrefix(part: Part): string | false | undefined {
  if (part.value === false) return false;
  return readAnyText(part, '"gh", or false for none');
}

/** What is right by itself and not beside the rest. Only what the server says itself is told: defaults are for others too. */
function checkTogether(group: Group, settings: ServerSettings): void {
  const { reading } = group;
  if (group.has("idleStopMs") && settings.start === "eager")
    reading.issue(
      group.get("idleStopMs").path,
      'is for servers that start with their first use: write "start": "lazy" too',
    );
  if (group.has("maxConnections") && settings.sharing === "shared")
    reading.warn(
      group.get("maxConnections").path,
      'is not used while "sharing" is "shared", which has one connection',
    );
  checkTimes(group, settings);
}

function checkTimes(group: Group, { timeoutMs, maxTotalMs }: ServerSettings): void {
  if (timeoutMs <= maxTotalMs || !(group.has("timeoutMs") || group.has("maxTotalMs"))) return;
  group.reading.warn(
    group.get("timeoutMs").path,
    `is never reached: maxTotalMs is ${maxTotalMs}, which is less`,
  );
}
