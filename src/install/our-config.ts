import { isDeepStrictEqual } from "node:util";
import { parseConfig } from "../gateway/config/parse-config.ts";
import { type TextFile, readClientFile } from "./client-file.ts";
import type { OurEntry } from "./entry-from-client.ts";
import { parseJson, readJsonSection, spliceJson } from "./json-splice.ts";

/** Our config with servers added, and under which name each of them is. */
export interface ConfigEdit {
  readonly file: TextFile;
  readonly text: string;
  /** Names in our config by names in the client. */
  readonly names: ReadonlyMap<string, string>;
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

/** Adds servers of a client to our config. A launch that is there already is not added again; another one gets another name. */
export function addServers(path: string, client: string, added: ReadonlyMap<string, OurEntry>): ConfigEdit {
  const file = readClientFile(path);
  const known = new Map(
    Object.entries(readJsonSection(path, file.text, "mcpServers")) as [string, OurEntry][],
  );
  const names = new Map<string, string>();
  const set = new Map<string, OurEntry>();
  const perSession: string[] = [];
  for (const [name, entry] of added) {
    const same = [...known].find(([, each]) => isDeepStrictEqual(launchOf(each), launchOf(entry)));
    const own = same?.[0] ?? freeName(name, client, known);
    names.set(name, own);
    if (same !== undefined) continue;
    known.set(own, entry);
    set.set(own, entry);
    if (stateful.test([entry.command, ...(entry.args ?? [])].join(" "))) perSession.push(own);
  }
  const withServers =
    set.size === 0 && file.exists
      ? file.text
      : spliceJson(path, file.text, { section: "mcpServers", set, remove: [] });
  const text = perSession.length === 0 ? withServers : withSettings(path, withServers, perSession);
  assertConfig(path, text);
  return { file, text, names };
}

/** Throws a `ConfigError` when the text would be no config of ours. */
export function assertConfig(file: string, text: string): void {
  parseConfig(text, { file, env: {}, readText: () => "" });
}

function launchOf({ command, args = [], env = {}, cwd, envFile, url, type, headers = {} }: OurEntry): object {
  return JSON.parse(JSON.stringify({ command, args, env, cwd, envFile, url, type, headers })) as object;
}

function freeName(name: string, client: string, known: ReadonlyMap<string, unknown>): string {
  if (!known.has(name)) return name;
  for (let number = 1; ; number++) {
    const next = `${name}-${client}${number === 1 ? "" : `-${number}`}`;
    if (!known.has(next)) return next;
  }
}

/** Each session has a process of its own of these servers. */
function withSettings(file: string, text: string, names: readonly string[]): string {
  const top = (parseJson(file, text)?.value ?? {}) as { junctor?: { servers?: { [name: string]: object } } };
  const servers = { ...top.junctor?.servers };
  for (const name of names) servers[name] = { sharing: "perSession", ...servers[name] };
  return spliceJson(file, text, { section: "junctor", set: new Map([["servers", servers]]), remove: [] });
}
