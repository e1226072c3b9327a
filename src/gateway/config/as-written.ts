import { createFindings } from "./findings.ts";
import { urlKeys } from "./http-launch.ts";
import { parseJsonc } from "./jsonc.ts";

/** A server or module that a config names. */
interface WrittenLaunch {
  /** The name of the server; `(module)` for a module. */
  readonly name: string;
  /** What would be started, reached or loaded, in the words of the file. */
  readonly text: string;
}

/**
 * What a config would start, reach and load, as the file writes it: every server, also one that is off today because a
 * variable is not set, with `${VAR}` left as it is. Values of `env` and `headers` are left out; nothing else is hidden,
 * because a person is to decide by it. The text must have been parsed before.
 */
export function listLaunches(text: string): readonly WrittenLaunch[] {
  const top = toFields(parseJsonc(text, createFindings({ file: "", env: {} })));
  const servers = ["mcpServers", "servers"].flatMap((section) => Object.entries(toFields(top[section])));
  const { middleware } = toFields(top["junctor"]);
  const modules: readonly unknown[] = Array.isArray(middleware) ? middleware : [];
  return [
    ...servers.map(([name, entry]) => ({ name, text: describe(toFields(entry)) })),
    ...modules.map((path) => ({ name: "(module)", text: toWord(path) })),
  ];
}

type WrittenFields = { readonly [key: string]: unknown };

function describe(entry: WrittenFields): string {
  const { command, args, cwd, envFile, env, headers } = entry;
  const given: readonly unknown[] = Array.isArray(args) ? args : args === undefined ? [] : [args];
  const words = [command, ...given];
  const launch = command === undefined ? urlKeys.flatMap((key) => entry[key] ?? []) : words;
  const notes = [
    cwd === undefined ? "" : `in ${toWord(cwd)}`,
    envFile === undefined ? "" : `reads ${toWord(envFile)}`,
    toNames("sets", env),
    toNames("sends", headers),
  ].filter((note) => note !== "");
  return [launch.map(toWord).join(" "), ...notes.map((note) => `(${note})`)].join(" ");
}

function toNames(verb: string, values: unknown): string {
  const names = Object.keys(toFields(values));
  return names.length === 0 ? "" : `${verb} ${names.join(", ")}`;
}

/** A word of a command line, in quotes where it needs them. */
function toWord(word: unknown): string {
  return typeof word === "string" && /^[\w@%+=:,./${}?&-]+$/.test(word) ? word : JSON.stringify(word);
}

function toFields(value: unknown): WrittenFields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as WrittenFields) : {};
}
