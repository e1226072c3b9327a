import { resolve } from "node:path";
import { type Group, type Part, toGroup } from "./config-value.ts";
import type { CallLimits, GatewayConfig } from "./config.ts";
import { given } from "./defined-fields.ts";
import { readHttpSettings } from "./http-settings.ts";
import { readKeys } from "./key-settings.ts";
import { readRedaction } from "./redaction.ts";
import { defaultKeys, settingKeys } from "./server-settings.ts";
import { type KeyHints, refuseUnknownKeys } from "./unknown-keys.ts";
import {
  readAllowed,
  readChoice,
  readFlag,
  readGroup,
  readGroupOrEmpty,
  readList,
  readNumber,
  readText,
  readTexts,
  timeRange,
} from "./value-readers.ts";

/** What the `junctor` section says of the gateway as a whole. */
export type GatewaySettings = Omit<GatewayConfig, "servers" | "disabled" | "secrets" | "warnings">;

const keys = [
  "servers",
  "defaults",
  "separator",
  "keys",
  "allow",
  "deny",
  "middleware",
  "audit",
  "limits",
  "redact",
  "http",
  "log",
  "firstListMs",
  "maxStarts",
  "remember",
];
const levels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
/** A cold `npx` takes seconds; many clients list once and never again. */
const usualFirstListMs = 20_000;
const auditExample = '"audit.jsonl", or { "file": "audit.jsonl", "keep": 5 }';

const ofServers: KeyHints = Object.fromEntries(
  settingKeys
    .filter((key) => !keys.includes(key))
    .map((key) => [key, `it is said of servers: ${adviseOn(key)}`]),
);

function adviseOn(key: string): string {
  const one = `write "servers": { "NAME": { "${key}": … } }`;
  return defaultKeys.includes(key) ? `${one}, or "defaults": { "${key}": … } for all` : one;
}

/** Reads the section, but for its `servers` and their `defaults`. */
export function readGatewaySettings(section: Group): GatewaySettings {
  refuseUnknownKeys(section, keys, ofServers);
  return {
    separator: readChoice(section.get("separator"), ["__", "_", "-", ".", "/"]) ?? "__",
    keys: readKeys(section.get("keys")),
    allow: readAllowed(section.get("allow"), '"allow": ["github__*"]'),
    deny: readTexts(section.get("deny"), '"deny": ["github__delete_*"]'),
    middleware: readList(section.get("middleware"), '"middleware": ["./mine.mjs"]', readPath),
    audit: readAudit(section.get("audit")),
    limits: readLimits(section.get("limits")),
    redact: readList(section.get("redact"), '"redact": ["/sk-[a-z0-9]+/i"]', readRedaction),
    http: readHttpSettings(section.get("http")),
    log: { level: readLevel(section.get("log")) ?? "info" },
    firstListMs:
      readNumber(section.get("firstListMs"), { min: 0, max: 600_000, example: usualFirstListMs }) ??
      usualFirstListMs,
    maxStarts: readNumber(section.get("maxStarts"), { min: 1, max: 64, example: 4 }),
    remembersLists: readFlag(section.get("remember")) ?? true,
  };
}

/** A path, resolved against the folder of the config. */
function readPath(part: Part): string | undefined {
  const file = readText(part, '"./file"');
  const { folder } = part.reading.source;
  return file === undefined || folder === undefined ? file : resolve(folder, file);
}

function readAudit(part: Part): GatewayConfig["audit"] {
  const { reading, path } = part;
  const group = toGroup(part);
  if (group === undefined) {
    if (typeof part.value !== "string") readGroup(part, auditExample);
    const file = typeof part.value === "string" ? readPath(part) : undefined;
    return file === undefined ? undefined : { file };
  }
  const isAllKnown = refuseUnknownKeys(group, ["file", "maxBytes", "keep", "arguments"]);
  if (!group.has("file") && isAllKnown) reading.issue(path, `has no file: write ${auditExample}`);
  const file = readPath(group.get("file"));
  const rest = given({
    maxBytes: readNumber(group.get("maxBytes"), { min: 1024, max: 2 ** 40, example: 67_108_864 }),
    keep: readNumber(group.get("keep"), { min: 0, max: 1000, example: 5 }),
    arguments: readFlag(group.get("arguments")),
  });
  return file === undefined ? undefined : { file, ...rest };
}

function readLimits(part: Part): GatewayConfig["limits"] {
  const group = readGroupOrEmpty(part, '"limits": { "callsPerMinute": 60 }');
  refuseUnknownKeys(group, ["callsPerMinute", "callTimeoutMs", "tools"]);
  const tools = readGroup(group.get("tools"), '"tools": { "github__*": { "callsPerMinute": 60 } }');
  const entries = (tools?.entries() ?? []).map(([glob, at]) => [glob, readToolLimits(at)] as const);
  return { ...readCallLimits(group), ...(tools === undefined ? {} : { tools: Object.fromEntries(entries) }) };
}

function readToolLimits(part: Part): CallLimits {
  const group = readGroupOrEmpty(part, '{ "callsPerMinute": 60 }');
  refuseUnknownKeys(group, ["callsPerMinute", "callTimeoutMs"]);
  return readCallLimits(group);
}

function readCallLimits(group: Group): CallLimits {
  return given({
    callsPerMinute: readNumber(group.get("callsPerMinute"), { min: 1, max: 1_000_000, example: 60 }),
    callTimeoutMs: readNumber(group.get("callTimeoutMs"), timeRange(60_000)),
  });
}

function readLevel(part: Part): (typeof levels)[number] | undefined {
  const group = readGroupOrEmpty(part, '"log": { "level": "debug" }');
  refuseUnknownKeys(group, ["level"]);
  return readChoice(group.get("level"), levels);
}
