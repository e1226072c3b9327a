import { nearest } from "../../errors/nearest.ts";
import type { ServerConfig } from "./config.ts";
import { given } from "./given.ts";
import type { Group, Part } from "./part.ts";
import {
  readAllowed,
  readAnyText,
  readChoice,
  readFlag,
  readGroupOrEmpty,
  readNumber,
  readTexts,
  timeRange,
} from "./read.ts";
import { readToolRules } from "./tool-rules.ts";
import { refuseUnknownKeys } from "./unknown-keys.ts";

/** What `junctor.servers.NAME` says. A prefix that is not given depends on the server's name. */
export type ServerSettings = Omit<ServerConfig, "name" | "launch" | "prefix"> & {
  readonly prefix: string | false | undefined;
};

/** The keys of a server's settings. */
export const settingKeys: readonly string[] = [
  "start",
  "sharing",
  "prefix",
  "startTimeoutMs",
  "timeoutMs",
  "maxTotalMs",
  "maxConnections",
  "idleStopMs",
  "allow",
  "deny",
  "tools",
  "audit",
];

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

/** The settings of one server, with what was left out filled in. */
export function readServerSettings(part: Part): ServerSettings {
  const group = readGroupOrEmpty(part, '{ "start": "lazy" }');
  refuseUnknownKeys(group, settingKeys);
  const settings: ServerSettings = {
    start: readChoice(group.get("start"), ["eager", "lazy"]) ?? "eager",
    sharing: readChoice(group.get("sharing"), ["shared", "perSession", "exclusive"]) ?? "shared",
    prefix: readPrefix(group.get("prefix")),
    startTimeoutMs: readNumber(group.get("startTimeoutMs"), timeRange(30_000)) ?? 30_000,
    timeoutMs: readNumber(group.get("timeoutMs"), timeRange(300_000)) ?? 300_000,
    maxTotalMs: readNumber(group.get("maxTotalMs"), timeRange(1_800_000)) ?? 1_800_000,
    maxConnections: readNumber(group.get("maxConnections"), { min: 1, max: 1000, example: 8 }) ?? 8,
    idleStopMs: readNumber(group.get("idleStopMs"), timeRange(600_000)),
    allow: readAllowed(group.get("allow"), '"allow": ["read_*"]'),
    deny: readTexts(group.get("deny"), '"deny": ["delete_*"]'),
    tools: readToolRules(group.get("tools")),
    audit: readServerAudit(group.get("audit")),
  };
  checkTogether(group, settings);
  return settings;
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

/** What is right by itself and not beside the rest. */
function checkTogether(group: Group, settings: ServerSettings): void {
  const { reading } = group;
  const has = (key: string): boolean => group.has(key);
  const at = (key: string): string => group.get(key).path;
  if (settings.idleStopMs !== undefined && settings.start === "eager")
    reading.issue(
      at("idleStopMs"),
      'is for servers that start with their first use: write "start": "lazy" too',
    );
  if (has("maxConnections") && settings.sharing === "shared")
    reading.warn(at("maxConnections"), 'is not used while "sharing" is "shared", which has one connection');
  if ((has("timeoutMs") || has("maxTotalMs")) && settings.timeoutMs > settings.maxTotalMs)
    reading.warn(at("timeoutMs"), `is never reached: maxTotalMs is ${settings.maxTotalMs}, which is less`);
}
