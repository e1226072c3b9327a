import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { defaultNaming, type Separator } from "@junctor/core/compose";
import { ConfigError } from "@junctor/core/errors";
import { createConfigSchema, findSamePrefixes, parseConfig, toPrefix } from "../config/index.ts";
import type { OurEntry } from "./client-entry.ts";
import { readClientFile, type TextFile, writeClientFile } from "./client-file.ts";
import { parseJson, readJsonSection, spliceJson } from "./json-splice.ts";

/** Our config with servers added, and under which name each of them is. */
export interface ConfigEdit {
  readonly file: TextFile;
  readonly text: string;
  /** Names in our config by names in the client. */
  readonly names: ReadonlyMap<string, string>;
  /** The names in our config that are new. */
  readonly added: readonly string[];
  /** The names in our config that were off and are now on. */
  readonly enabled: readonly string[];
}

/** The schema for editors, beside our config: this path works wherever the package is. */
const schemaName = "junctor.schema.json";
const newConfig = `${JSON.stringify({ $schema: `./${schemaName}`, mcpServers: {} }, null, 2)}\n`;

/** Our config with servers set or taken out. A new one names its schema. */
export function editServers(
  { path, text }: TextFile,
  set: ReadonlyMap<string, OurEntry>,
  remove: readonly string[],
): string {
  const edited = spliceJson(path, text.trim() === "" ? newConfig : text, {
    section: "mcpServers",
    set,
    remove,
  });
  assertConfig(path, edited);
  return edited;
}

/** Writes our config, and beside it the schema that it names, as this version has it. */
export function writeOurConfig(file: TextFile, text: string): void {
  writeClientFile(file, text);
  const { $schema } = (parseJson(file.path, text)?.value ?? {}) as { readonly $schema?: unknown };
  if ($schema !== `./${schemaName}`) return;
  const schema = readClientFile(join(dirname(file.path), schemaName));
  const next = `${JSON.stringify(createConfigSchema(), undefined, 2)}\n`;
  if (schema.text !== next) writeClientFile(schema, next);
}

/** Servers that keep the state of one user, as of November 2026: each session gets a process of its own. */
const stateful =
  /(?:^|[\s/@])(?:playwright-mcp|mcp-server-playwright|@playwright\/mcp|chrome-devtools-mcp)(?:@|\s|$)/;

/** The servers that our config has, as they are written. */
export function readOurServers(file: string): { readonly [name: string]: OurEntry } {
  return readJsonSection(file, readClientFile(file).text, "mcpServers") as {
    readonly [name: string]: OurEntry;
  };
}

/**
 * Adds servers of a client to our config. A launch that is there already is not added again, and is switched on if the client has it
 * on; another one gets another name. `file` is our config where that is not the one on disk.
 */
export function addServers(
  path: string,
  client: string,
  added: ReadonlyMap<string, OurEntry>,
  file: TextFile = readClientFile(path),
): ConfigEdit {
  const known = new Map(
    Object.entries(readJsonSection(path, file.text, "mcpServers")) as [string, OurEntry][],
  );
  const before = new Set(known.keys());
  const isTaken = createIsTaken(path, file.text, known);
  const names = new Map<string, string>();
  const set = new Map<string, OurEntry>();
  const perSession: string[] = [];
  for (const [name, entry] of added) {
    const same = [...known].find(([, each]) => isDeepStrictEqual(launchOf(each), launchOf(entry)));
    const own = same?.[0] ?? freeName(name, client, isTaken);
    names.set(name, own);
    const { disabled, ...rest } = same?.[1] ?? entry;
    if (same !== undefined && (disabled !== true || entry.disabled === true)) continue;
    const next = same === undefined ? entry : rest;
    known.set(own, next);
    set.set(own, next);
    if (stateful.test([entry.command, ...(entry.args ?? [])].join(" "))) perSession.push(own);
  }
  const withServers = set.size === 0 && file.exists ? file.text : editServers(file, set, []);
  const text = perSession.length === 0 ? withServers : withSettings(path, withServers, perSession);
  assertConfig(path, text);
  const enabled = [...set.keys()].filter((name) => before.has(name));
  return { file, text, names, added: [...set.keys()].filter((name) => !before.has(name)), enabled };
}

/** Why our config cannot have a server of a client; undefined when it can. */
export function whyRefused(name: string, entry: OurEntry): string | undefined {
  try {
    assertConfig("", JSON.stringify({ mcpServers: { [name]: entry } }));
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [issue] = error.issues;
    return `our config cannot have it: ${issue?.path ?? ""} ${issue?.message ?? ""}`;
  }
}

/** Throws a `ConfigError` when the text is not a valid config. */
function assertConfig(file: string, text: string): void {
  parseConfig(text, { file, env: {}, readText: () => "" });
}

function launchOf({ command, args = [], env = {}, cwd, envFile, url, type, headers = {} }: OurEntry): object {
  return JSON.parse(JSON.stringify({ command, args, env, cwd, envFile, url, type, headers })) as object;
}

type IsTaken = (name: string) => boolean;

function freeName(name: string, client: string, isTaken: IsTaken): string {
  if (!isTaken(name)) return name;
  for (let number = 1; ; number++) {
    const next = `${name}-${client}${number === 1 ? "" : `-${number}`}`;
    if (!isTaken(next)) return next;
  }
}

/**
 * Makes a function that says whether a server has a name, or gives its tools the prefix that a server of this name would: by the separator
 * and prefixes of the config.
 */
function createIsTaken(file: string, text: string, known: ReadonlyMap<string, unknown>): IsTaken {
  const { separator, servers } = readNaming(file, text);
  const prefixOf = (name: string): string | false => servers[name]?.prefix ?? toPrefix(name, separator);
  return (name) => {
    const prefixes = new Map([...known.keys(), name].map((each) => [each, prefixOf(each)]));
    return known.has(name) || findSamePrefixes(prefixes, separator).some(([, second]) => second === name);
  };
}

/** How our config names the tools of servers. Invalid values are refused when the config is checked. */
function readNaming(file: string, text: string): { separator: Separator; servers: PrefixSettings } {
  const { separator, servers } = readJsonSection(file, text, "junctor") as {
    separator?: Separator;
    servers?: PrefixSettings;
  };
  return { separator: separator ?? defaultNaming.separator, servers: servers ?? {} };
}

type PrefixSettings = { readonly [name: string]: { readonly prefix?: string | false } | undefined };

/** Gives each session a process of its own for these servers. */
function withSettings(file: string, text: string, names: readonly string[]): string {
  const top = (parseJson(file, text)?.value ?? {}) as { junctor?: { servers?: { [name: string]: object } } };
  const servers = { ...top.junctor?.servers };
  for (const name of names) servers[name] = { sharing: "perSession", ...servers[name] };
  return spliceJson(file, text, { section: "junctor", set: new Map([["servers", servers]]), remove: [] });
}
