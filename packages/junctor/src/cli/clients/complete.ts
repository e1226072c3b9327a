import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@junctor/core/async";
import { defaultNaming } from "@junctor/core/compose";
import { userConfig } from "../../attach/index.ts";
import { toToolName } from "../../catalog/index.ts";
import { parseConfigFile, readConfigText, type GatewayConfig, cacheFolder } from "../../config/index.ts";
import { clients } from "../../install/index.ts";
import { silentLog } from "../../log/index.ts";
import { openListMemory } from "../../servers/index.ts";
import { parseFoundConfig, usualFiles } from "../config/index.ts";
import { type Command, commonFlags, print } from "../terminal/index.ts";

type Load = { readonly [name: string]: () => Promise<Command> };

/** `junctor complete -- WORDS…`: what may stand in place of the last word, one a line. Shells run it; it never fails. */
export async function complete(words: readonly string[], commands: Load): Promise<number> {
  const given = words[0] === "--" ? words.slice(1) : words;
  const found = await candidates(given, commands).catch(() => []);
  const last = given.at(-1) ?? "";
  // A name with a line end would be two, and one with other control characters would steer the terminal.
  const fitting = found.filter((word) => word.startsWith(last) && !/\p{C}/u.test(word));
  await print(fitting.map((word) => `${word}\n`).join(""));
  return 0;
}

async function candidates(words: readonly string[], commands: Load): Promise<readonly string[]> {
  const [name = "", ...rest] = words;
  if (rest.length === 0) return [...Object.keys(commands), "help"];
  const command = Object.hasOwn(commands, name) ? await commands[name]?.() : undefined;
  if (command === undefined) return name === "help" ? Object.keys(commands) : [];
  const last = rest.at(-1) ?? "";
  const before = rest.at(-2) ?? "";
  const flags = { ...command.flags, ...commonFlags };
  if (last.startsWith("-")) return Object.keys(flags).map((flag) => `--${flag}`);
  const flag = before.startsWith("--") ? before.slice(2) : "";
  // The value of a flag: names we know, else files, which the shell completes.
  if (Object.hasOwn(flags, flag) && flags[flag]?.value !== undefined) return valuesOf(flag, rest);
  const operands = rest.slice(0, -1).filter((word) => !word.startsWith("-"));
  return operandsOf(name, operands, rest);
}

function valuesOf(flag: string, rest: readonly string[]): readonly string[] {
  if (flag === "server") return serverNames(readConfig(rest));
  if (flag === "client") return clients.map(({ id }) => id);
  if (flag === "profile") return readConfig(rest)?.profiles.map(({ name }) => name) ?? [];
  return [];
}

const ofClients = ["install", "uninstall", "import"];
const ofServers = ["remove", "enable", "disable", "restart", "logs", "tools", "check", "login"];

function operandsOf(name: string, operands: readonly string[], rest: readonly string[]): readonly string[] {
  if (ofClients.includes(name)) return clients.map(({ id }) => id);
  if (ofServers.includes(name)) return serverNames(readConfig(rest));
  if (name === "daemon") return ["status", "logs", "stop", "restart"];
  if (name === "service") return ["install", "uninstall"];
  if (name === "completion") return ["bash", "zsh", "fish"];
  if (name !== "call") return [];
  const tools = knownTools(readConfig(rest));
  const [tool] = operands;
  return tool === undefined ? [...tools.keys()] : (tools.get(tool) ?? []);
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
  const memory = openListMemory({ folder, hide: (text) => text, log: silentLog, clock: systemClock });
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
