import type { ClientPlace, ClientProgram, VariableStyle } from "./clients.ts";

/** How our program is started: a launcher, or on Windows Node itself with its script. */
export interface Launcher {
  readonly command: string;
  readonly args: readonly string[];
}

/** The name of our entry in the files of clients. */
export const ourName = "junctor";

/** Whether an entry of a client starts us, under whatever name. */
export function isOurEntry(value: unknown): boolean {
  const text = JSON.stringify(value) ?? "";
  return text.includes('"attach"') && text.includes("junctor");
}

/** Our entry, as a client writes down its servers. */
export function toClientEntry(
  client: ClientProgram,
  launcher: Launcher,
  place: Pick<ClientPlace, "home" | "platform">,
): object {
  const command = client.entry === "vscode" ? toPortable(launcher.command, place) : launcher.command;
  const args = [...launcher.args, "attach", "--client", client.id];
  switch (client.entry) {
    case "vscode":
      return { type: "stdio", command, args };
    case "copilot":
      return { type: "local", command, args, tools: ["*"] };
    case "opencode":
      return { type: "local", command: [command, ...args], enabled: true };
    case "goose":
      return { name: ourName, type: "stdio", cmd: command, args, enabled: true, envs: {}, timeout: 300 };
    case "plain":
    case "codex":
    case "gemini":
      return { command, args };
  }
}

/** VS Code syncs its files to other machines, where the home folder may be another. */
function toPortable(command: string, { home, platform }: Pick<ClientPlace, "home" | "platform">): string {
  const isBelow = platform !== "win32" && command.startsWith(`${home}/`);
  return isBelow ? `\${userHome}${command.slice(home.length)}` : command;
}

/** A server as our config has it. */
export interface OurEntry {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: { readonly [name: string]: string };
  readonly cwd?: string;
  readonly envFile?: string;
  readonly url?: string;
  readonly type?: "http" | "sse";
  readonly headers?: { readonly [name: string]: string };
  readonly disabled?: boolean;
}

/** A server of a client: as ours, or why it stays with the client. */
type Imported =
  | {
      readonly kind: "entry";
      readonly entry: OurEntry;
      /** The settings of the client that our entry does not have. */
      readonly dropped: readonly string[];
    }
  | { readonly kind: "stays"; readonly why: string };

type ClientEntry = { readonly [key: string]: unknown };

/** How clients limit a server to some of its tools. We would offer all of them. */
const toolLimits = [
  "enabled_tools",
  "disabled_tools",
  "includeTools",
  "excludeTools",
  "disabledTools",
  "available_tools",
  "tools",
];

/** The keys that become part of our entry of a program, or of an address. */
const ofProgram = "command cmd args env envs environment cwd envFile env_keys env_vars".split(" ");
const ofAddress = "url httpUrl serverUrl uri headers requestOptions.headers".split(" ");
const ofAddressInCodex = "url http_headers env_http_headers bearer_token_env_var".split(" ");

/** Takes a server of a client over into our config, and names the settings that only the client knows. */
export function toOurEntry(client: ClientProgram, value: unknown): Imported {
  const stays = (why: string): Imported => ({ kind: "stays", why });
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return stays("it is not an object");
  const given = value as ClientEntry;
  if (/\$\{(?:input|prompt|secrets?):/.test(JSON.stringify(given)))
    return stays("the client asks for a value of it");
  if (["auth", "oauth", "authProvider"].some((key) => key in given))
    return stays("the client signs in to it");
  const limit = toolLimits.find((key) => texts(given[key]).some((name) => name !== "*"));
  if (limit !== undefined) return stays(`the client limits its tools (${limit})`);
  if (client.entry === "goose" && !isOfGoose(given)) return stays("it is a part of Goose");
  const named = client.entry === "goose" ? texts(given["env_keys"]) : [];
  if (named.length > 0) return stays("its secrets are in the keychain of Goose");
  const entry = client.entry === "codex" ? ofCodex(given) : ofOthers(given);
  if (entry.command === undefined && entry.url === undefined) return stays("it has no command and no URL");
  return { kind: "entry", entry: fillIn(entry, client.variables), dropped: droppedBy(client, entry, given) };
}

function droppedBy({ entry: style }: ClientProgram, entry: OurEntry, given: ClientEntry): readonly string[] {
  const ofUrl = style === "codex" ? ofAddressInCodex : ofAddress;
  const carried = new Set([
    ...(entry.command === undefined ? ofUrl : ofProgram),
    ..."type transport disabled enabled".split(" "),
    ...toolLimits.filter((key) => Array.isArray(given[key])), // A list that limits nothing.
  ]);
  const keys = Object.entries(given).flatMap(([key, value]) =>
    key === "requestOptions" ? Object.keys(record(value)).map((each) => `${key}.${each}`) : [key],
  );
  return keys.filter((key) => !carried.has(key));
}

function isOfGoose({ type }: ClientEntry): boolean {
  return type === "stdio" || type === "streamable_http" || type === "sse";
}

function ofOthers(given: ClientEntry): OurEntry {
  const words = Array.isArray(given["command"]) ? texts(given["command"]) : undefined;
  const command = words?.[0] ?? text(given["command"]) ?? text(given["cmd"]);
  const args = words?.slice(1) ?? texts(given["args"]);
  const env = record(given["env"] ?? given["envs"] ?? given["environment"]);
  const url = text(given["httpUrl"]) ?? text(given["serverUrl"]) ?? text(given["url"]) ?? text(given["uri"]);
  const headers = record(
    given["headers"] ?? (given["requestOptions"] as ClientEntry | undefined)?.["headers"],
  );
  return {
    ...(command === undefined
      ? {}
      : { command, args, ...some("env", env), ...optional("cwd", text(given["cwd"])) }),
    ...(command === undefined ? {} : optional("envFile", text(given["envFile"]))),
    ...(command !== undefined || url === undefined
      ? {}
      : { url, ...sse(given), ...some("headers", headers) }),
    ...off(given),
  };
}

function ofCodex(given: ClientEntry): OurEntry {
  const { headers = {}, ...rest } = ofOthers({ ...given, headers: given["http_headers"] });
  const token = text(given["bearer_token_env_var"]);
  const fromEnv = Object.entries(record(given["env_http_headers"])).map(([name, variable]) => [
    name,
    `\0{${variable}}`,
  ]);
  const all = {
    ...headers,
    ...(Object.fromEntries(fromEnv) as { [name: string]: string }),
    ...(token === undefined ? {} : { Authorization: `Bearer \0{${token}}` }),
  };
  const names = texts(given["env_vars"]).map((name) => [name, `\0{${name}:-}`]);
  const env = { ...(Object.fromEntries(names) as { [name: string]: string }), ...rest.env };
  return { ...rest, ...some("env", env), ...(rest.url === undefined ? {} : some("headers", all)) };
}

function sse(given: ClientEntry): Pick<OurEntry, "type"> {
  const isSse = given["type"] === "sse" || given["transport"] === "sse";
  return isSse ? { type: "sse" } : {};
}

function off({ disabled, enabled }: ClientEntry): Pick<OurEntry, "disabled"> {
  return disabled === true || enabled === false ? { disabled: true } : {};
}

/** Variables as ours are written. `\0{` stands for a reference that we made; every other `${` of a client without variables is text. */
function fillIn(entry: OurEntry, style: VariableStyle): OurEntry {
  const convert = (value: string): string => toOurVariables(value, style).replaceAll("\0{", () => "${");
  return JSON.parse(
    JSON.stringify(entry, (_, value: unknown) => (typeof value === "string" ? convert(value) : value)),
  ) as OurEntry;
}

function toOurVariables(value: string, style: VariableStyle): string {
  switch (style) {
    case "braces":
      return value;
    case "none":
      return value.replaceAll("${", () => "$${");
    case "dollar":
      return value.replaceAll(
        /\$(?:\{(\w+)\}|([A-Za-z_]\w*))/g,
        (_, one: string | undefined, two: string | undefined) => `\${${one ?? two ?? ""}:-}`,
      );
    case "curly":
      return value
        .replaceAll("${", () => "$${")
        .replaceAll(/\{env:(\w+)\}/g, (_, name: string) => `\${${name}:-}`);
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

function record(value: unknown): { readonly [name: string]: string } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, String(each)]));
}

function optional<Key extends string>(key: Key, value: string | undefined): { readonly [K in Key]?: string } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [K in Key]?: string };
}

function some<Key extends string>(
  key: Key,
  value: { readonly [name: string]: string },
): { readonly [K in Key]?: typeof value } {
  return (Object.keys(value).length === 0 ? {} : { [key]: value }) as { readonly [K in Key]?: typeof value };
}
