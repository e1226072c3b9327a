import { isJsonObject, type JsonObject } from "@junctor/core/json";
import { urlKeys } from "./entry-rows.ts";
import { createFindings } from "./findings.ts";
import { parseJsonc } from "./jsonc.ts";

/** A server, a module or an address that a config names. */
interface WrittenLaunch {
  /** The name of the server; `(module)` for a module, `(traces.endpoint)` for a setting of the gateway itself. */
  readonly name: string;
  /** What would be started, reached, loaded, let in or written, in the words of the file. */
  readonly text: string;
}

/**
 * What a config would start, reach, load, let in and write, as the file writes it: every server, also one that is off today because a
 * variable is not set, with `${VAR}` left as it is. Values of `env` and `headers` are left out; nothing else is hidden,
 * because a person is to decide by it. Throws a `ConfigError` for a syntax error.
 */
export function listLaunches(file: string, text: string): readonly WrittenLaunch[] {
  const top = toFields(parseJsonc(text, createFindings({ file, env: {} })));
  const servers = ["mcpServers", "servers"].flatMap((section) => Object.entries(toFields(top[section])));
  const junctor = toFields(top["junctor"]);
  const { middleware } = junctor;
  const modules: readonly unknown[] = Array.isArray(middleware) ? middleware : [];
  return [
    ...servers.map(([name, entry]) => ({ name, text: describe(toFields(entry)) })),
    ...modules.map((path) => ({ name: "(module)", text: toWord(path) })),
    ...outward.flatMap((key) => listTexts(key, junctor[key])),
  ];
}

/** Settings by which the gateway itself reaches others, lets them in, or writes files. */
const outward = ["traces", "store", "trunk", "issuers", "http", "admin", "audit", "accessLog"] as const;

/** Members that reach nothing, or may hold a secret. */
const unlisted = new Set(["serverCard", "sha256", "clientSecret"]);

/** Every text of a setting; of headers, their names. */
function listTexts(path: string, value: unknown): readonly WrittenLaunch[] {
  if (typeof value === "string") return [{ name: `(${path})`, text: toWord(value) }];
  if (typeof value !== "object" || value === null) return [];
  if (path.endsWith(".headers")) return [{ name: `(${path})`, text: Object.keys(value).join(", ") }];
  return Object.entries(value).flatMap(([key, inner]) =>
    unlisted.has(key) ? [] : listTexts(`${path}.${key}`, inner),
  );
}

function describe(entry: JsonObject): string {
  const { command, args, cwd, envFile, env, headers } = entry;
  const argList: readonly unknown[] = Array.isArray(args) ? args : args === undefined ? [] : [args];
  const words = [command, ...argList];
  const urls = [...urlKeys.flatMap((key) => entry[key] ?? []), ...addressesOf(entry)];
  const launch = command !== undefined ? words : urls.length > 0 ? urls : commandsOf(entry);
  const notes = [
    cwd === undefined ? "" : `in ${toWord(cwd)}`,
    envFile === undefined ? "" : `reads ${toWord(envFile)}`,
    toNames("sets", env),
    toNames("sends", headers),
  ].filter((note) => note !== "");
  return [launch.map(toWord).join(" "), ...notes.map((note) => `(${note})`)].join(" ");
}

/** Where the description of an API is, and the API. Keys of its query are left out. */
function addressesOf({ openapi, graphql }: JsonObject): readonly unknown[] {
  if (graphql !== undefined) return [typeof graphql === "string" ? graphql : toFields(graphql)["server"]];
  if (openapi === undefined) return [];
  if (typeof openapi === "string") return [openapi];
  const { spec, server } = toFields(openapi);
  return server === undefined ? [spec] : [spec, "asks", server];
}

/** The words of commands that are tools. */
function commandsOf({ tools }: JsonObject): readonly unknown[] {
  return Object.values(toFields(tools)).flatMap((tool, index) => {
    const { run } = toFields(tool);
    const words: readonly unknown[] = Array.isArray(run) ? run.flat() : [run];
    return index === 0 ? words : [";", ...words];
  });
}

function toNames(verb: string, values: unknown): string {
  const names = Object.keys(toFields(values));
  return names.length === 0 ? "" : `${verb} ${names.join(", ")}`;
}

/** A word of a command line, in quotes where it needs them. */
function toWord(word: unknown): string {
  return typeof word === "string" && /^[\w@%+=:,./${}?&-]+$/.test(word) ? word : JSON.stringify(word);
}

function toFields(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
