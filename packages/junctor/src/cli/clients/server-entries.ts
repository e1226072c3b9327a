import { resolve } from "node:path";
import { describeCommand } from "@junctor/client/internal";
import { suggest } from "@junctor/core/options";
import { isRelativePath } from "../../daemon/index.ts";
import { createGateway } from "../../gateway/index.ts";
import {
  editServers,
  type OurEntry,
  readClientFile,
  readOurServers,
  writeOurConfig,
} from "../../install/index.ts";
import { junctor } from "../../invocation/index.ts";
import { note, type ParsedOf, print, type Run, toSafeLine, UsageError } from "../terminal/index.ts";
import { moveSecrets } from "./move-secrets.ts";
import { assertOwnTerminal, configOf, tellGateways } from "./own-terminal.ts";

/** `junctor add` */
export const add: Run<"add"> = async (parsed) => {
  assertOwnTerminal();
  const [name, url, stray] = parsed.operands;
  if (name === undefined || stray !== undefined || (url === undefined) === (parsed.command === undefined))
    throw new UsageError(`write ${junctor("add")} NAME -- COMMAND ARGS…, or ${junctor("add")} NAME URL`);
  const config = configOf(parsed);
  if (Object.hasOwn(readOurServers(config), name) && !parsed.flags.replace)
    throw new UsageError(
      `${config} has a server ${JSON.stringify(name)}; write --replace, or choose another name`,
    );
  const entry = toEntry(parsed, url);
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
};

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
    if (!URL.canParse(url)) throw new UsageError(`${JSON.stringify(url)} is no URL; a command goes after --`);
    return { url, ...(parsed.flags.header.length > 0 ? { headers } : {}) };
  }
  if (parsed.flags.header.length > 0) throw new UsageError("--header is for servers with a URL");
  const [command = "", ...args] = parsed.command ?? [];
  if (command === "") throw new UsageError("there is no command after --");
  const folder = cwd === undefined ? {} : { cwd: cwd.includes("${") ? cwd : resolve(cwd) };
  return { command, args, ...(parsed.flags.env.length > 0 ? { env } : {}), ...folder };
}

/** Whether a server starts and lists; says so, or what is wrong. */
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
