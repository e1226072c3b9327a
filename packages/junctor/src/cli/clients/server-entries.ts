import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describeCommand } from "@junctor/client/internal";
import { suggest } from "@junctor/core/options";
import { homeFolder } from "../../attach/index.ts";
import { readKeychain, writeKeychain, writePrivateFile } from "../../config/index.ts";
import { isRelativePath } from "../../daemon/index.ts";
import { createGateway } from "../../gateway/index.ts";
import {
  editServers,
  type OurEntry,
  readClientFile,
  readOurServers,
  sha256Of,
  writeOurConfig,
} from "../../install/index.ts";
import { junctor } from "../../invocation/index.ts";
import {
  note,
  type Parsed,
  type ParsedOf,
  print,
  type Run,
  type SharedValues,
  toSafeLine,
  UsageError,
} from "../terminal/index.ts";
import { assertOwnTerminal, configOf, tellGateways } from "./own-terminal.ts";
import { chooseListed } from "./registry-servers.ts";

/** `junctor add` */
export const add: Run<"add"> = async (parsed) => {
  assertOwnTerminal();
  const [name, url, stray] = parsed.operands;
  const isListed = name?.includes("/") === true && url === undefined && parsed.command === undefined;
  if (isListed) {
    const listed = await chooseListed(parsed, name);
    return listed === undefined ? 1 : write(parsed, listed.name, listed.entry);
  }
  if (name === undefined || stray !== undefined || (url === undefined) === (parsed.command === undefined))
    throw new UsageError(`write ${junctor("add")} NAME -- COMMAND ARGS…, or ${junctor("add")} NAME URL`);
  return write(parsed, name, toEntry(parsed, url));
};

async function write(parsed: ParsedOf<"add">, name: string, entry: OurEntry): Promise<number> {
  const config = configOf(parsed);
  if (Object.hasOwn(readOurServers(config), name) && !parsed.flags.replace)
    throw new UsageError(
      `${config} has a server ${JSON.stringify(name)}; write --replace, or choose another name`,
    );
  if (!parsed.flags["no-check"] && !(await works(name, entry))) return 3;
  const moved = moveSecrets(parsed, new Map([[name, entry]]), true);
  moved.write();
  await edit(config, moved.entries, []);
  await print(`${toSafeLine(name)} is in ${toSafeLine(config)}\n`);
  const path = entry.cwd === undefined && [entry.command ?? "", ...(entry.args ?? [])].find(isRelativePath);
  if (typeof path === "string")
    await note(
      `junctor: warning: ${toSafeLine(path)} is another file in each project; write the whole path, or --cwd FOLDER\n`,
    );
  return 0;
}

/** `junctor remove` */
export const remove: Run<"remove"> = async (parsed) => {
  const { config, names } = chosenOf(parsed, "remove");
  await edit(config, new Map(), names);
  await print(`${toSafeLine(names.join(", "))} ${names.length === 1 ? "is" : "are"} gone\n`);
  return 0;
};

/** `junctor enable` */
export const enable: Run<"enable"> = async (parsed) => {
  const { config, names, servers } = chosenOf(parsed, "enable");
  const set = new Map<string, OurEntry>();
  for (const name of names) {
    const { disabled: _, ...entry } = servers[name] ?? {};
    if (!parsed.flags["no-check"] && !(await works(name, entry))) return 3;
    set.set(name, entry);
  }
  await edit(config, set, []);
  await print(`${toSafeLine(names.join(", "))} ${names.length === 1 ? "is" : "are"} on\n`);
  return 0;
};

/** `junctor disable` */
export const disable: Run<"disable"> = async (parsed) => {
  const { config, names, servers } = chosenOf(parsed, "disable");
  await edit(config, new Map(names.map((name) => [name, { ...servers[name], disabled: true }])), []);
  await print(`${toSafeLine(names.join(", "))} ${names.length === 1 ? "is" : "are"} off\n`);
  return 0;
};

/** An entry as one line, without values of variables and headers. */
export function describeEntry({ command, args, url, env = {}, headers = {} }: OurEntry): string {
  const names = Object.keys(url === undefined ? env : headers).join(", ");
  const what = url ?? describeCommand({ command: command ?? "", args: args ?? [] });
  return names === "" ? what : `${what} (${url === undefined ? "sets" : "sends"} ${names})`;
}

function chosenOf(
  parsed: ParsedOf<"add" | "remove" | "enable" | "disable">,
  act: string,
): {
  readonly config: string;
  readonly names: readonly string[];
  readonly servers: { readonly [name: string]: OurEntry };
} {
  assertOwnTerminal();
  const config = configOf(parsed);
  const servers = readOurServers(config);
  const names = [...new Set(parsed.operands)];
  if (names.length === 0) throw new UsageError(`${act} needs the name of a server`);
  const known = Object.keys(servers);
  for (const name of names)
    if (!known.includes(name))
      throw new UsageError(
        `${config} has no server ${JSON.stringify(name)}; ${suggest(name, known, `it has ${known.join(", ") || "none"}`)}`,
      );
  return { config, names, servers };
}

async function edit(
  config: string,
  set: ReadonlyMap<string, OurEntry>,
  names: readonly string[],
): Promise<void> {
  const file = readClientFile(config);
  const text = editServers(file, set, names);
  if (text !== file.text) writeOurConfig(file, text);
  await tellGateways(config);
}

function toEntry(parsed: ParsedOf<"add">, url: string | undefined): OurEntry {
  const pairs = (flag: "env" | "header", pattern: RegExp): { readonly [name: string]: string } =>
    Object.fromEntries(
      parsed.flags[flag].map((text) => {
        const [, name, value] = pattern.exec(text) ?? [];
        if (name === undefined || value === undefined)
          throw new UsageError(
            `--${flag} ${JSON.stringify(text.slice(0, 20))} is wrong: write --${flag} ${flag === "env" ? "NAME=VALUE" : "'NAME: VALUE'"}`,
          );
        return [name, value] as const;
      }),
    );
  const env = pairs("env", /^([^=]+)=(.*)$/s);
  const headers = pairs("header", /^([^:]+):\s*(.*)$/s);
  const cwd = parsed.flags.cwd;
  if (url !== undefined) {
    if (parsed.flags.env.length > 0 || cwd !== undefined)
      throw new UsageError("--env and --cwd are for servers with a command");
    if (!URL.canParse(url))
      throw new UsageError(`${JSON.stringify(url)} is not a URL; a command goes after --`);
    return { url, ...(parsed.flags.header.length > 0 ? { headers } : {}) };
  }
  if (parsed.flags.header.length > 0) throw new UsageError("--header is for servers with a URL");
  const [command = "", ...args] = parsed.command ?? [];
  if (command === "") throw new UsageError("there is no command after --");
  const folder = cwd === undefined ? {} : { cwd: cwd.includes("${") ? cwd : resolve(cwd) };
  return { command, args, ...(parsed.flags.env.length > 0 ? { env } : {}), ...folder };
}

/** Starts a server, and prints whether it works or what is wrong. */
async function works(name: string, entry: OurEntry): Promise<boolean> {
  await using gateway = await createGateway({ mcpServers: { [name]: entry } }, { firstListMs: 60_000 });
  await gateway.ready;
  const [status] = gateway.status();
  if (status?.status === "up") {
    await note(`${toSafeLine(name)} works: ${status.tools === 1 ? "1 tool" : `${status.tools} tools`}\n`);
    return true;
  }
  const why = status?.reason ?? status?.trouble ?? "it did not start";
  await note(
    `junctor: ${toSafeLine(`${name} does not work: ${why}`)}; nothing was written (--no-check writes it anyway)\n`,
  );
  return false;
}

interface Moved {
  readonly entries: ReadonlyMap<string, OurEntry>;
  /** Writes the secrets. Throws a `UsageError` when they cannot be kept. */
  readonly write: () => void;
}

/**
 * Entries without the values that the flags want elsewhere; references to variables stay. With `mayReplace` the secrets of a
 * server of the same name are replaced; else they stay, because another server may use them.
 */
export function moveSecrets(
  parsed: Parsed<SharedValues<"secrets">>,
  entries: ReadonlyMap<string, OurEntry>,
  mayReplace: boolean,
): Moved {
  if (parsed.flags.secrets && parsed.flags.keychain)
    throw new UsageError("write --secrets or --keychain, not both");
  if (parsed.flags.keychain) return moveToKeychain(entries, mayReplace);
  return parsed.flags.secrets ? moveToFiles(entries, mayReplace) : { entries, write: () => {} };
}

type EntryValues = { readonly [name: string]: string };

function moveToFiles(entries: ReadonlyMap<string, OurEntry>, mayReplace: boolean): Moved {
  const files = new Map<string, string>();
  const moved = Array.from(entries, ([name, entry]): [string, OurEntry] => {
    const { env = {}, envFile, ...rest } = entry;
    const values = secretsIn(env);
    if (values.length === 0 || envFile !== undefined) return [name, entry];
    const text = values.map(([key, value]) => `${key}=${JSON.stringify(value)}\n`).join("");
    const file = fileFor(name, text, mayReplace);
    files.set(file, text);
    const left = Object.fromEntries(Object.entries(env).filter(([, value]) => value.includes("${")));
    return [name, { ...rest, ...(Object.keys(left).length === 0 ? {} : { env: left }), envFile: file }];
  });
  return {
    entries: new Map(moved),
    write: () => {
      for (const [file, text] of files) writePrivateFile(file, text);
    },
  };
}

/** The file for the variables of a server. */
function fileFor(name: string, text: string, mayReplace: boolean): string {
  const path = (own: string): string => join(homeFolder(), "env", `${own}.env`);
  const read = (own: string): string | undefined => {
    try {
      return readFileSync(path(own), "utf8");
    } catch {
      return undefined;
    }
  };
  const own = toOwnName(name);
  return path(mayReplace ? own : findFree(own, text, read));
}

/** The name of a server as files and keychains can have it. Two names that differ stay different. */
function toOwnName(name: string): string {
  const own = name.replaceAll(/[^\w.-]/g, "_");
  return own === name ? own : `${own}-${sha256Of(name).slice(0, 8)}`;
}

/** The first of `NAME`, `NAME-2` and so on that is free or has these values: other values may be those of another server. */
function findFree(name: string, text: string, read: (own: string) => string | undefined): string {
  for (let count = 1; ; count++) {
    const own = count === 1 ? name : `${name}-${count}`;
    const there = read(own);
    if (there === undefined || there === text) return own;
    if (count === maxSame)
      throw new UsageError(`there are ${count} secrets of the name ${name}: remove some`);
  }
}

const maxSame = 20;

function moveToKeychain(entries: ReadonlyMap<string, OurEntry>, mayReplace: boolean): Moved {
  const secrets = new Map<string, string>();
  const move = (server: string, values: EntryValues | undefined): EntryValues | undefined =>
    values &&
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => {
        if (value === "" || value.includes("${")) return [key, value];
        const own = `${toOwnName(server)}/${toOwnName(key)}`;
        const name = mayReplace ? own : findFree(own, value, readText);
        secrets.set(name, value);
        return [key, `\${keychain:${name}}`];
      }),
    );
  const moved = Array.from(entries, ([name, entry]): [string, OurEntry] => {
    const [env, headers] = [move(name, entry.env), move(name, entry.headers)];
    return [name, { ...entry, ...(env && { env }), ...(headers && { headers }) }];
  });
  return {
    entries: new Map(moved),
    write: () => {
      for (const [name, value] of secrets) {
        const problem = writeKeychain(name, value);
        if (problem !== undefined)
          throw new UsageError(
            `${name} cannot be kept in the keychain: ${problem}; nothing was written to the config. --secrets keeps it in a file`,
          );
      }
    },
  };
}

function secretsIn(values: EntryValues): readonly (readonly [string, string])[] {
  return Object.entries(values).filter(([, value]) => !value.includes("${"));
}

function readText(name: string): string | undefined {
  const secret = readKeychain(name);
  return "text" in secret ? secret.text : undefined;
}
