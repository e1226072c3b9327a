import { ConfigError } from "../../errors/config-error.ts";
import { nearest } from "../../errors/nearest.ts";
import type { Separator } from "../../tools/namespace.ts";
import type { ConfigSource } from "./config-source.ts";
import { emptyGroup, type Group, type Part, toGroup } from "./config-value.ts";
import type { DisabledServer, GatewayConfig, ServerConfig } from "./config.ts";
import { createReading, type Reading } from "./findings.ts";
import { parseJsonc } from "./jsonc.ts";
import { readGatewaySettings } from "./junctor-section.ts";
import { describePrefixRule, findSamePrefixes, isPrefix, toPrefix } from "./prefix.ts";
import { readServerEntries, type ServerEntry } from "./server-entry.ts";
import { checkServerNames, readDefaults, readServerSettings } from "./server-settings.ts";
import { readGroupOrEmpty } from "./value-readers.ts";

export type { ConfigSource } from "./config-source.ts";

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
  const reading = createReading(source);
  return toConfig(parseJsonc(text, reading), reading);
}

/** Like {@link parseConfig}, of a config that was written as an object. */
export function parseConfigValue(value: unknown, source: ConfigSource): GatewayConfig {
  return toConfig(value, createReading(source));
}

function toConfig(value: unknown, reading: Reading): GatewayConfig {
  const top = readTop({ value, path: "", reading });
  const entries = readServerEntries(top);
  const section = readGroupOrEmpty(top.get("junctor"), '"junctor": { "separator": "__" }');
  const settings = readGatewaySettings(section);
  const servers = readServers(entries, section, settings.separator);
  warnOfUnusedAudits(section);
  const { issues, warnings, source } = reading;
  if (issues.length > 0) throw new ConfigError(source.file, issues);
  return { ...servers, ...settings, secrets: reading.secrets(), warnings };
}

/** The top level. What else stands there is the business of other programs, unless it is one of ours misspelt. */
function readTop(part: Part): Group {
  const { reading } = part;
  const top = toGroup(part);
  if (top === undefined) {
    reading.issue("", `is ${part.value === undefined ? "empty" : "not an object"}: write ${example}`);
    return emptyGroup(part);
  }
  const issuesBefore = reading.issues.length;
  for (const [key, { path }] of top.entries()) {
    const near = sections.includes(key) ? undefined : nearest(key, sections);
    if (near !== undefined) reading.issue(path, `is not known here: did you mean ${near}?`);
  }
  const hasServers = top.has("mcpServers") || top.has("servers") || reading.issues.length > issuesBefore;
  // Without servers, and with nothing of ours, it is most likely another program's file.
  if (!hasServers && !top.has("junctor")) reading.issue("", `has no servers: write ${example}`);
  return top;
}

function readServers(
  entries: readonly ServerEntry[],
  section: Group,
  separator: Separator,
): Pick<GatewayConfig, "servers" | "disabled"> {
  const group = readGroupOrEmpty(section.get("servers"), '"servers": { "NAME": { "start": "lazy" } }');
  checkServerNames(
    group,
    entries.map(({ name }) => name),
  );
  const defaults = readDefaults(section.get("defaults"));
  const paths = new Map(entries.map(({ name, path }) => [name, path]));
  const servers: ServerConfig[] = [];
  const disabled: DisabledServer[] = [];
  for (const { name, launch, disabled: reason, tools } of entries) {
    const part = group.get(name);
    // Read for every server: what is wrong with the settings of one that is off is said together with the rest.
    const { prefix: own, ...settings } = readServerSettings(part, defaults);
    if (typeof own === "string") checkPrefix(own, separator, `${part.path}.prefix`, group.reading);
    const prefix = own ?? toPrefix(name, separator);
    const { tools: rules, audit } = settings;
    if (reason !== undefined) disabled.push({ name, prefix, tools: rules, audit, reason });
    else if (launch !== undefined) servers.push({ name, launch, ...settings, ...tools, prefix });
  }
  // Disabled ones too: whether a config is right does not depend on the variables that are set.
  const prefixes = new Map([...servers, ...disabled].map(({ name, prefix }) => [name, prefix]));
  for (const [first, second] of findSamePrefixes(prefixes, separator)) {
    const advice = `write "junctor": { "servers": { ${JSON.stringify(second)}: { "prefix": "…" } } }`;
    group.reading.issue(
      paths.get(second) ?? "",
      `has the same prefix as ${JSON.stringify(first)}: ${advice}`,
    );
  }
  return { servers, disabled };
}

/** A server's audit setting says what is recorded of it; whether anything is, and where, is said of the gateway. */
function warnOfUnusedAudits(section: Group): void {
  if (section.has("audit")) return;
  for (const [, part] of toGroup(section.get("servers"))?.entries() ?? []) {
    const group = toGroup(part);
    if (group?.has("audit") !== true) continue;
    const advice = 'is not used while there is no audit: write "junctor": { "audit": "audit.jsonl" }';
    section.reading.warn(group.get("audit").path, advice);
  }
}

function checkPrefix(prefix: string, separator: Separator, path: string, reading: Reading): void {
  if (isPrefix(prefix, separator)) return;
  const rule = prefix === "" ? "write false for none" : describePrefixRule(separator);
  reading.issue(path, `cannot be a prefix: ${rule}`);
}
