import { resolve } from "node:path";
import type { CallerLimits } from "@junctor/core/async";
import { defined } from "@junctor/core/options";
import { readStore, readTrunk } from "./cluster-settings.ts";
import { type ConfigObject, type ConfigValue, refuse, toObject } from "./config-value.ts";
import type { CallLimits, GatewayConfig } from "./config.ts";
import { readHttpSettings } from "./http-settings.ts";
import { readIssuers } from "./issuer-settings.ts";
import { readKeys } from "./key-settings.ts";
import { readProfiles } from "./profile-settings.ts";
import { readRedaction } from "./redaction.ts";
import { readRules } from "./rule-settings.ts";
import { defaultKeys, settingKeys } from "./server-settings.ts";
import { readAccessLog, readAdmin, readTraces } from "./telemetry-settings.ts";
import {
  type KeyHints,
  readAllowed,
  readChoice,
  readFlag,
  readObject,
  readObjectOrEmpty,
  readList,
  readNumber,
  readPath,
  readTexts,
  refuseUnknownKeys,
  timeRange,
} from "./value-readers.ts";

/** What the `junctor` section says of the gateway as a whole. */
type GatewaySettings = Omit<GatewayConfig, "servers" | "disabled" | "secrets" | "ownSecrets" | "warnings">;

const keys: readonly string[] =
  "servers defaults separator keys issuers rules profiles allow deny middleware audit limits perCaller redact http admin traces accessLog log daemon firstListMs maxStarts remember lock store trunk drainMs".split(
    " ",
  );
const levels = ["trace", "debug", "info", "warn", "error", "silent"] as const;
/** A cold `npx` takes seconds; many clients list once and never again. */
const usualFirstListMs = 20_000;
/** As long as a question to a caller is good for. */
const usualDrainMs = 600_000;
const lockModes = ["off", "warn", "enforce"] as const;
const lockExample = '"enforce", or { "mode": "enforce", "skip": ["resources"] }';
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
export function readGatewaySettings(section: ConfigObject): GatewaySettings {
  refuseUnknownKeys(section, keys, ofServers);
  const http = readHttpSettings(section.get("http"));
  const issuers = readIssuers(section.get("issuers"), http.publicUrl);
  return {
    separator: readChoice(section.get("separator"), ["__", "_", "-", ".", "/"]) ?? "__",
    keys: readKeys(
      section.get("keys"),
      // What the names of callers with a token or a certificate begin with.
      [...issuers.map(({ name }) => name), "cert"],
    ),
    issuers,
    rules: readRules(section.get("rules")),
    profiles: readProfiles(section.get("profiles")),
    allow: readAllowed(section.get("allow"), '"allow": ["github__*"]'),
    deny: readTexts(section.get("deny"), '"deny": ["github__delete_*"]'),
    middleware: readList(section.get("middleware"), '"middleware": ["./mine.mjs"]', readPath),
    audit: readAudit(section.get("audit")),
    limits: readLimits(section.get("limits")),
    perCaller: readCallerLimits(section.get("perCaller")),
    redact: readList(section.get("redact"), '"redact": ["/sk-[a-z0-9]+/i"]', readRedaction),
    http,
    admin: readAdmin(section.get("admin")),
    traces: readTraces(section.get("traces")),
    accessLog: readAccessLog(section.get("accessLog")),
    log: { level: readLevel(section.get("log")) ?? "info" },
    daemon: readDaemonSettings(section.get("daemon")),
    firstListMs:
      readNumber(section.get("firstListMs"), { min: 0, max: 600_000, example: usualFirstListMs }) ??
      usualFirstListMs,
    maxStarts: readNumber(section.get("maxStarts"), { min: 1, max: 64, example: 4 }),
    lock: readLockSettings(section.get("lock")),
    store: readStore(section.get("store")),
    trunk: readTrunk(section.get("trunk")),
    drainMs:
      readNumber(section.get("drainMs"), { min: 0, max: 86_400_000, example: usualDrainMs }) ?? usualDrainMs,
    remembersLists: readFlag(section.get("remember")) ?? true,
  };
}

function readAudit(given: ConfigValue): GatewayConfig["audit"] {
  const object = toObject(given);
  if (object === undefined) {
    if (typeof given.value !== "string") readObject(given, auditExample);
    const file = typeof given.value === "string" ? readPath(given) : undefined;
    return file === undefined ? undefined : { file };
  }
  const isAllKnown = refuseUnknownKeys(object, [
    "file",
    "maxBytes",
    "keep",
    "keepDays",
    "onFailure",
    "arguments",
  ]);
  if (!object.has("file") && isAllKnown) refuse(given, `has no file: write ${auditExample}`);
  const file = readPath(object.get("file"));
  const rest = defined({
    maxBytes: readNumber(object.get("maxBytes"), { min: 1024, max: 2 ** 40, example: 67_108_864 }),
    keep: readNumber(object.get("keep"), { min: 0, max: 1000, example: 5 }),
    keepDays: readNumber(object.get("keepDays"), { min: 0, max: 3650, example: 1 }),
    onFailure: readChoice(object.get("onFailure"), ["closed", "open"]),
    arguments: readFlag(object.get("arguments")),
  });
  return file === undefined ? undefined : { file, ...rest };
}

/** The lock is beside the config unless it is said to be elsewhere. */
function readLockSettings(given: ConfigValue): GatewayConfig["lock"] {
  const object = toObject(given);
  if (object === undefined && typeof given.value !== "string") readObject(given, lockExample);
  const text = typeof given.value === "string" ? given : undefined;
  const isAllKnown = object === undefined || refuseUnknownKeys(object, ["mode", "file", "skip"]);
  if (object?.has("mode") === false && isAllKnown) refuse(given, `has no mode: write ${lockExample}`);
  const modeGiven = text ?? object?.get("mode");
  const mode = modeGiven === undefined ? undefined : readChoice(modeGiven, lockModes);
  const file = object === undefined ? undefined : readPath(object.get("file"));
  const skippable = ["prompts", "resources", "templates", "instructions"] as const;
  const skip =
    object === undefined
      ? []
      : readList(object.get("skip"), '"skip": ["resources"]', (item) => readChoice(item, skippable));
  const beside = resolve(given.findings.source.folder ?? ".", "junctor.lock");
  return mode === undefined || mode === "off" ? undefined : { mode, file: file ?? beside, skip };
}

function readLimits(given: ConfigValue): GatewayConfig["limits"] {
  const object = readObjectOrEmpty(given, '"limits": { "callsPerMinute": 60 }');
  refuseUnknownKeys(object, ["callsPerMinute", "callTimeoutMs", "strict", "tools"]);
  const tools = readObject(object.get("tools"), '"tools": { "github__*": { "callsPerMinute": 60 } }');
  const entries = (tools?.entries() ?? []).map(([glob, at]) => [glob, readToolLimits(at)] as const);
  return {
    ...readCallLimits(object),
    ...(tools === undefined ? {} : { tools: Object.fromEntries(entries) }),
  };
}

function readToolLimits(given: ConfigValue): CallLimits {
  const object = readObjectOrEmpty(given, '{ "callsPerMinute": 60 }');
  refuseUnknownKeys(object, ["callsPerMinute", "callTimeoutMs", "strict"]);
  return readCallLimits(object);
}

function readCallLimits(object: ConfigObject): CallLimits {
  return defined({
    callsPerMinute: readNumber(object.get("callsPerMinute"), { min: 1, max: 1_000_000, example: 60 }),
    callTimeoutMs: readNumber(object.get("callTimeoutMs"), timeRange(60_000)),
    strict: readFlag(object.get("strict")),
  });
}

function readCallerLimits(given: ConfigValue): CallerLimits {
  const object = readObjectOrEmpty(given, '"perCaller": { "calls": 100 }');
  refuseUnknownKeys(
    object,
    "calls streams sessions subscriptions completionsPerMinute parked unreadBytes".split(" "),
  );
  const read = (key: keyof CallerLimits): number | undefined =>
    readNumber(object.get(key), { min: 1, max: 1_000_000, example: 100 });
  return defined({
    calls: read("calls"),
    streams: read("streams"),
    sessions: read("sessions"),
    subscriptions: read("subscriptions"),
    completionsPerMinute: read("completionsPerMinute"),
    parked: read("parked"),
    unreadBytes: readNumber(object.get("unreadBytes"), { min: 1024, max: 2 ** 40, example: 67_108_864 }),
  });
}

/** How long the daemon stays without a client. */
function readDaemonSettings(given: ConfigValue): GatewayConfig["daemon"] {
  const usualIdleMs = 15 * 60_000;
  const object = readObjectOrEmpty(given, `"daemon": { "idleMs": ${usualIdleMs} }`);
  refuseUnknownKeys(object, ["idleMs"]);
  return { idleMs: readNumber(object.get("idleMs"), timeRange(usualIdleMs)) ?? usualIdleMs };
}

function readLevel(given: ConfigValue): (typeof levels)[number] | undefined {
  const object = readObjectOrEmpty(given, '"log": { "level": "debug" }');
  refuseUnknownKeys(object, ["level"]);
  return readChoice(object.get("level"), levels);
}
