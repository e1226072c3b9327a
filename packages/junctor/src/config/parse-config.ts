import { createHash } from "node:crypto";
import {
  assertNamespaces,
  defaultNaming,
  type Naming,
  prefixOf,
  type Separator,
} from "@junctor/core/compose";
import { ConfigError } from "@junctor/core/errors";
import { nearest } from "@junctor/core/options";
import type { DisabledServer, GatewayConfig, ServerConfig } from "./config.ts";
import { mayWantOAuth, readServerEntries, type ServerEntry } from "./entry-rows.ts";
import type { ConfigSource } from "./expand.ts";
import { createFindings, type Findings } from "./findings.ts";
import { gatewayRows, type GatewaySettings } from "./gateway-rows.ts";
import { parseJsonc } from "./jsonc.ts";
import { readRows } from "./rows.ts";
import {
  checkPlacement,
  checkServerNames,
  readDefaults,
  readServerSettings,
  serverHints,
} from "./server-rows.ts";
import {
  type ConfigObject,
  type ConfigValue,
  joinPath,
  readObjectOrEmpty,
  refuse,
  refuseUnknownKeys,
  toObject,
  warn,
} from "./value-readers.ts";

const sections = ["mcpServers", "servers", "junctor", "inputs"];
const example = '{ "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }';

/**
 * Parses the text of a config: the `mcpServers` file of Claude, Cursor and others, or VS Code's with `servers`, as they
 * are, with an optional `junctor` section. Throws a `ConfigError` that has everything that is wrong.
 *
 * @example
 * const config = parseConfig(text, { file: "mcp.json", env: process.env, folder: "." });
 */
export function parseConfig(text: string, source: ConfigSource): GatewayConfig {
  const findings = createFindings(source);
  return toConfig(parseJsonc(text, findings), findings);
}

/** Like {@link parseConfig}, for a config that is an object. */
export function parseConfigValue(value: unknown, source: ConfigSource): GatewayConfig {
  return toConfig(value, createFindings(source));
}

function toConfig(value: unknown, findings: Findings): GatewayConfig {
  const top = readTop({ value, path: "", findings });
  const entries = readServerEntries(top);
  const section = readObjectOrEmpty(top.get("junctor"), '"junctor": { "separator": "__" }');
  const settings = readGatewaySettings(section);
  const servers = readServers(entries, section, settings.separator);
  const names = [...servers.servers, ...servers.disabled].map(({ name }) => name);
  checkAccess(section, settings, names);
  warnOfUnanswered(section);
  warnOfUnusedAudits(section);
  warnOfUnusedGroups(section);
  const { issues, warnings, source } = findings;
  if (issues.length > 0) throw new ConfigError(source.file, issues);
  return {
    ...servers,
    ...settings,
    secrets: findings.secrets(),
    ownSecrets: findings.ownSecrets(),
    warnings,
  };
}

/** What may stand in the section; the first two are read apart from the rest. */
const sectionKeys: readonly string[] = ["servers", "defaults", ...Object.keys(gatewayRows)];

function readGatewaySettings(section: ConfigObject): GatewaySettings {
  // Some people name the schema here.
  const written = { ...section, entries: () => section.entries().filter(([key]) => key !== "$schema") };
  for (const [key, at] of section.entries())
    if (key === "$schema" && typeof at.value !== "string")
      refuse(at, "is not a text: write the address of a schema, or leave it out");
  refuseUnknownKeys(written, sectionKeys, serverHints);
  return readRows(gatewayRows, section);
}

/** The top level. Other keys there belong to other programs, unless they are ours misspelt. */
function readTop(given: ConfigValue): ConfigObject {
  const { findings } = given;
  const top = toObject(given);
  if (top === undefined) {
    refuse(given, `is ${given.value === undefined ? "empty" : "not an object"}: write ${example}`);
    return readObjectOrEmpty({ ...given, value: undefined }, example);
  }
  const issuesBefore = findings.issues.length;
  for (const [key, at] of top.entries()) {
    const near = sections.includes(key) ? undefined : nearest(key, sections);
    if (near !== undefined) refuse(at, `is not known here: did you mean ${near}?`);
  }
  const hasServers = top.has("mcpServers") || top.has("servers") || findings.issues.length > issuesBefore;
  // Without servers, and with nothing of ours, it is most likely another program's file.
  if (!hasServers && !top.has("junctor")) {
    const bare = top.entries().find(([, at]) => isEntry(toObject(at)));
    const instead = bare === undefined ? example : `{ "mcpServers": { "${bare[0]}": … } } around them`;
    refuse(given, `has no servers: write ${instead}`);
  }
  return top;
}

/** Whether an object says how a server is reached. */
function isEntry(object: ConfigObject | undefined): boolean {
  return object !== undefined && ["command", "url", "openapi", "graphql"].some((key) => object.has(key));
}

function readServers(
  entries: readonly ServerEntry[],
  section: ConfigObject,
  separator: Separator,
): Pick<GatewayConfig, "servers" | "disabled"> {
  const object = readObjectOrEmpty(section.get("servers"), '"servers": { "NAME": { "start": "lazy" } }');
  checkServerNames(
    object,
    entries.map(({ name }) => name),
  );
  const defaults = readDefaults(section.get("defaults"));
  const paths = new Map(entries.map(({ name, path }) => [name, path]));
  const { source } = object.findings;
  const servers: ServerConfig[] = [];
  const disabled: DisabledServer[] = [];
  for (const { name, launch, disabled: reason, tools } of entries) {
    const given = object.get(name);
    // Read for every server: mistakes in the settings of a disabled server are reported with the rest.
    const { prefix: own, sandbox: wanted, ...settings } = readServerSettings(given, defaults);
    checkPlacement(given, launch, settings.sharing);
    if (typeof own === "string" && !isPrefix(own, separator)) {
      const rule = own === "" ? "write false for none" : describePrefixRule(separator);
      object.findings.issue(`${given.path}.prefix`, `cannot be a prefix: ${rule}`);
    }
    const prefix = own ?? toPrefix(name, separator);
    if (settings.credentials === "perCaller" && launch !== undefined && !mayWantOAuth(launch))
      object.findings.issue(
        `${given.path}.credentials`,
        'is for a server with a "url" and without an Authorization header: callers have no accounts at others',
      );
    const { tools: rules, audit } = settings;
    const runsHere = launch?.kind === "command" || launch?.kind === "commands";
    const sandbox = runsHere && wanted !== false ? wanted : undefined;
    const why = reason ?? (sandbox === undefined ? undefined : source.findSandboxProblem?.(sandbox));
    if (why !== undefined) disabled.push({ name, prefix, tools: rules, audit, reason: why });
    else if (launch !== undefined) servers.push({ name, launch, sandbox, ...settings, ...tools, prefix });
  }
  // Disabled servers too: whether a config is right must not depend on the variables that are set.
  const prefixes = new Map([...servers, ...disabled].map(({ name, prefix }) => [name, prefix]));
  for (const [first, second] of findSamePrefixes(prefixes, separator)) {
    const advice = `write "junctor": { "servers": { ${JSON.stringify(second)}: { "prefix": "…" } } }`;
    object.findings.issue(
      paths.get(second) ?? "",
      `has the same prefix as ${JSON.stringify(first)}: ${advice}`,
    );
  }
  return { servers, disabled };
}

/** Warns of rules that ask the operator where there is no admin API to answer by. */
function warnOfUnanswered(section: ConfigObject): void {
  const { value: rules } = section.get("rules");
  if (section.get("admin").value !== false || !Array.isArray(rules)) return;
  for (const [index, rule] of rules.entries()) {
    const { ask, of } = Object(rule) as { readonly ask?: unknown; readonly of?: unknown };
    if (ask === undefined || of === undefined || of === "caller") continue;
    const given = section.get("rules");
    warn(
      { ...given, path: `${given.path}[${index}].of` },
      'asks somebody who cannot answer: write "admin": {} to have the admin API, or "of": "caller"',
    );
  }
}

/** A server's audit setting says what is recorded of its calls. Whether and where records are written is a setting of the gateway. */
function warnOfUnusedAudits(section: ConfigObject): void {
  if (section.has("audit")) return;
  for (const [, given] of toObject(section.get("servers"))?.entries() ?? []) {
    const object = toObject(given);
    if (object?.has("audit") !== true) continue;
    const advice = 'is not used while there is no audit: write "junctor": { "audit": "audit.jsonl" }';
    warn(object.get("audit"), advice);
  }
}

function warnOfUnusedGroups(section: ConfigObject): void {
  const { value: drafts } = section.get("drafts");
  if (Array.isArray(drafts) && drafts.includes("groups")) return;
  for (const kind of ["servers", "profiles"])
    for (const [, given] of toObject(section.get(kind))?.entries() ?? []) {
      const object = toObject(given);
      if (object?.has("group") !== true) continue;
      warn(object.get("group"), 'is not used: write "junctor": { "drafts": ["groups"] } too');
    }
}

/** Reports profiles, keys and issuers that contradict the rest of a config. */
function checkAccess(
  section: ConfigObject,
  {
    profiles,
    keys,
    rules,
    issuers,
    http,
  }: Pick<GatewaySettings, "profiles" | "keys" | "rules" | "issuers" | "http">,
  servers: readonly string[],
): void {
  const { findings } = section;
  const at = (list: string, name: string): string => joinPath(`junctor.${list}`, name);
  if (issuers.length > 0 && http.publicUrl === undefined)
    refuse(
      section.get("issuers"),
      'needs the URL that tokens are made for: write "http": { "publicUrl": "https://mcp.example.com/mcp" }',
    );
  // What the names of callers with a token or a certificate begin with.
  const others = [...issuers.map(({ name }) => name), "cert"];
  for (const { name } of keys) {
    const issuer = others.find((each) => name.startsWith(`${each}:`));
    if (issuer !== undefined)
      findings.issue(
        at("keys", name),
        `could be the name of a caller with a token or a certificate (${issuer}:): choose another`,
      );
  }
  for (const { name } of profiles)
    if (servers.includes(name))
      findings.issue(
        at("profiles", name),
        "is the name of a server too: choose another, as both would be served at one path",
      );
  const names = new Set(profiles.map(({ name }) => name));
  const boundTo = [
    ...keys.map((key) => [at("keys", key.name), key] as const),
    ...rules.map((rule, index) => [`junctor.rules[${index}]`, rule] as const),
  ];
  for (const [place, { profiles: of = [] }] of boundTo)
    for (const name of of)
      if (!names.has(name))
        findings.issue(
          `${place}.profiles`,
          `names no profile: there is no ${JSON.stringify(name)} in "profiles"`,
        );
}

const maxLength = defaultNaming.maxLength / 2;

/** What a prefix must look like, for messages. */
function describePrefixRule(separator: Separator): string {
  const rule = `use up to ${maxLength} of the characters A-Z a-z 0-9 _ . -, begin with a letter or digit`;
  return `${rule}, and do not write or end in what could be taken for the separator ${JSON.stringify(separator)}`;
}

export function isPrefix(text: string, separator: Separator): boolean {
  try {
    assertNamespaces([text], toNaming(separator));
    return true;
  } catch {
    return false; // It throws for this reason only, and says so in words for programmers.
  }
}

/**
 * The prefix of a server for which the config names none: its name, or, when that cannot be one (`@scope/x`, `my server`), the
 * nearest thing that can. It depends on nothing but the name, so it does not change when other servers come or go.
 */
export function toPrefix(name: string, separator: Separator): string {
  const filler = separator === "-" ? "_" : "-";
  const trim = (text: string): string => text.replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, "");
  const hash = createHash("sha256").update(name).digest("hex").slice(0, 8);
  const lightly = trim(name.replaceAll(/[^A-Za-z0-9_.-]+/g, filler));
  const fully = trim(name.replaceAll(/[^A-Za-z0-9]+/g, filler));
  const cut = trim(fully.slice(0, maxLength - hash.length - 1));
  const last = `${cut === "" ? "server" : cut}${filler}${hash}`;
  return [name, lightly, fully].find((candidate) => isPrefix(candidate, separator)) ?? last;
}

/** Pairs of names whose prefixes are spelled the same in a tool's name, such as `a.b` and `a_b`. */
export function findSamePrefixes(
  prefixes: ReadonlyMap<string, string | false>,
  separator: Separator,
): readonly (readonly [first: string, second: string])[] {
  const owners = new Map<string, string>();
  const same: [string, string][] = [];
  for (const [name, prefix] of prefixes) {
    if (prefix === false) continue;
    const spelled = prefixOf(prefix, toNaming(separator));
    const owner = owners.get(spelled);
    if (owner === undefined) owners.set(spelled, name);
    else same.push([owner, name]);
  }
  return same;
}

function toNaming(separator: Separator): Naming {
  return { ...defaultNaming, separator };
}
