import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@junctor/core/async";
import { defaultNaming } from "@junctor/core/compose";
import { loadErrorEntries } from "@junctor/core/errors";
import { userConfig } from "../../attach/index.ts";
import { toToolName } from "../../catalog/index.ts";
import { cacheFolder, type GatewayConfig, parseConfigFile, readConfigText } from "../../config/index.ts";
import { clients } from "../../install/index.ts";
import { silentLog } from "../../log/index.ts";
import { ListMemory } from "../../servers/index.ts";
import { parseFoundConfig, usualFiles } from "../config/index.ts";
import {
  commandNames,
  type Completion,
  flagsOf,
  print,
  rowOf,
  type Run,
  UsageError,
} from "../terminal/index.ts";

/**
 * What each shell runs to complete a word: `junctor complete` prints what may stand there, one a line. Names are those of servers and
 * of files in a folder that a person just looks at, so no shell may evaluate them: `compgen -W` of bash would.
 */
const scripts: { readonly [shell: string]: string } = {
  bash: `_junctor() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$(printf %q "$word")")
  done < <(junctor complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ \${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _junctor junctor
`,
  zsh: `#compdef junctor
_junctor() {
  local -a found
  local ret=1
  found=("\${(@f)$(junctor complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "\${found[1]}" ]]; then _files; else
    compadd -S '' -- \${(M)found:#*=} && ret=0
    compadd -- \${found:#*=} && ret=0
    return ret
  fi
}
compdef _junctor junctor
`,
  fish: `complete --command junctor --no-files --arguments '(junctor complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};

/** `junctor completion` */
export const completion: Run<"completion"> = async ({ operands: [shell = "", stray] }) => {
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script === undefined || stray !== undefined)
    throw new UsageError(`write junctor completion with one of ${Object.keys(scripts).join(", ")}`);
  await print(script);
  return 0;
};

/** `junctor complete -- WORDS…`: what may stand in place of the last word, one a line. Shells run it; it never fails. */
export async function complete(words: readonly string[]): Promise<number> {
  const typed = words[0] === "--" ? words.slice(1) : words;
  const found = await findCandidates(typed).catch(() => []);
  const last = typed.at(-1) ?? "";
  // A name with a line end would be two, and one with other control characters would steer the terminal.
  const fitting = found.filter((word) => word.startsWith(last) && !/\p{C}/u.test(word));
  await print(fitting.map((word) => `${word}\n`).join(""));
  return 0;
}

async function findCandidates([name = "", ...rest]: readonly string[]): Promise<readonly string[]> {
  if (rest.length === 0) return [...commandNames, "help"];
  const row = rowOf(name);
  if (row === undefined) return name === "help" ? commandNames : [];
  const last = rest.at(-1) ?? "";
  const before = rest.at(-2) ?? "";
  const flags = flagsOf(row);
  if (last.startsWith("-")) return Object.keys(flags).map((flag) => `--${flag}`);
  const flag =
    before.startsWith("--") && Object.hasOwn(flags, before.slice(2)) ? flags[before.slice(2)] : undefined;
  // A value without a source is completed by the shell, with files.
  if (flag?.value !== undefined) return flag.complete === undefined ? [] : findWords(flag.complete, rest);
  const operands = rest.slice(0, -1).filter((word) => !word.startsWith("-"));
  const source = row.complete?.[operands.length] ?? row.complete?.at(-1);
  if (source === "tools" && operands.length > 0)
    return knownTools(readConfig(rest)).get(operands[0] ?? "") ?? [];
  return source === undefined ? [] : findWords(source, rest);
}

async function findWords(source: Completion, rest: readonly string[]): Promise<readonly string[]> {
  switch (source) {
    case "servers":
      return serverNames(readConfig(rest));
    case "clients":
      return clients.map(({ id }) => id);
    case "profiles":
      return readConfig(rest)?.profiles.map(({ name }) => name) ?? [];
    case "tools":
      return [...knownTools(readConfig(rest)).keys()];
    case "codes":
      return (await loadErrorEntries()).map(({ code }) => code);
    default:
      return source;
  }
}

/** The config that is named, or the usual one of this folder, or the user's. */
function readConfig(rest: readonly string[]): GatewayConfig | undefined {
  const at = rest.indexOf("--config");
  const named = at === -1 ? [] : rest.slice(at + 1, at + 2);
  const file = [...named, ...usualFiles, userConfig()].find((each) => existsSync(each));
  if (file === undefined) return undefined;
  const isFound = !named.includes(file) && usualFiles.includes(file);
  return isFound ? parseFoundConfig(file) : parseConfigFile(file, readConfigText(file), process.env);
}

function serverNames(config: GatewayConfig | undefined): readonly string[] {
  return [...(config?.servers ?? []), ...(config?.disabled ?? [])].map(({ name }) => name);
}

/** The tools of each server as they were last listed, with the names of their arguments. No server is started. */
function knownTools(config: GatewayConfig | undefined): ReadonlyMap<string, readonly string[]> {
  if (config === undefined) return new Map();
  const folder = join(cacheFolder(), "lists");
  const memory = new ListMemory({ folder, hide: (text) => text, log: silentLog, clock: systemClock });
  const naming = { ...defaultNaming, separator: config.separator };
  return new Map(
    config.servers.flatMap((server) =>
      (memory.recall(server)?.tools ?? []).map(({ name, inputSchema }): [string, readonly string[]] => {
        const { properties = {} } = inputSchema as { properties?: object };
        return [toToolName(server, name, naming), Object.keys(properties).map((key) => `${key}=`)];
      }),
    ),
  );
}
