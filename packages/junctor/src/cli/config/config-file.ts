import { createHash } from "node:crypto";
import { existsSync, lstatSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import { guardVariable } from "@junctor/client/internal";
import { ConfigError, type ConfigIssue } from "@junctor/core/errors";
import type { JsonObject } from "@junctor/core/json";
import { suggest } from "@junctor/core/options";
import {
  type GatewayConfig,
  listLaunches,
  parseConfig,
  parseConfigFile,
  readConfigText,
  readPrivateFile,
  stateFolder,
  writePrivateFile,
} from "../../config/index.ts";
import {
  describeError,
  note,
  type Parsed,
  type SharedValues,
  toRows,
  toSafeLine,
  UsageError,
  watchInterrupt,
  withTerminal,
} from "../terminal/index.ts";

/** Where a config is looked for when none is named. */
export const usualFiles: readonly string[] = ["junctor.json", ".mcp.json", "mcp.json"];

/** A config, and where it is. */
export interface ConfigFile {
  readonly file: string;
  readonly config: GatewayConfig;
  /** Whether a person said that it may be where others write. */
  readonly isTrusted: boolean;
}

/** Reads the config a command line names. Warnings about it go to standard error. */
export async function readConfigFile(parsed: Parsed<SharedValues<"config">>): Promise<ConfigFile> {
  const file = parsed.flags.config ?? "";
  return toConfigFile(file, readConfigText(file, true), parsed.flags["unsafe-config"]);
}

/**
 * The config a command works on: the one that is named, else the usual one in this folder, once a person agreed to it, else
 * undefined. `mayAsk` is false where the standard input is not the person's.
 */
export async function findConfigFile(
  parsed: Parsed<SharedValues<"config">>,
  mayAsk = true,
): Promise<ConfigFile | undefined> {
  if (parsed.flags.config !== undefined) return readConfigFile(parsed);
  const file = usualFiles.find((name) => existsSync(name));
  if (file === undefined) return undefined;
  // The file is read once, so that the content the person agreed to is the content that is used.
  const text = readConfigText(file);
  // Parsing asks the keychain for the secrets that the config names.
  await assertAgreed({ file, text }, mayAsk);
  return toConfigFile(file, text, parsed.flags["unsafe-config"]);
}

/**
 * Parses a config that was found, without asking the person. Until they agreed to it, no keychain is asked and no file that it names is
 * read, so servers with secrets of the keychain are disabled. Throws a `ConfigError`.
 */
export function parseFoundConfig(file: string): GatewayConfig {
  const text = readConfigText(file);
  if (isAgreed(file, text)) return parseConfigFile(file, text, process.env);
  const folder = dirname(resolve(file));
  return parseConfig(text, { file, env: process.env, folder, readText: () => "" });
}

async function toConfigFile(file: string, text: string, isTrusted: boolean): Promise<ConfigFile> {
  const config = parseConfigFile(file, text, process.env);
  const places = checkPlaces(file, config, isTrusted);
  const odd = [
    ...config.warnings,
    ...findExposed(file, config),
    ...places.map((message) => ({ path: "", message })),
  ];
  for (const { path, message } of odd)
    await note(`junctor: warning: ${[file, path, message].filter(Boolean).join(": ")}\n`);
  return { file, config, isTrusted };
}

/** Refuses a profile that the config does not have. */
export function assertProfile(
  { profiles }: GatewayConfig,
  name: string,
  server: string | undefined,
  file: string | undefined,
): void {
  if (server !== undefined)
    throw new UsageError("--profile is for all servers of a config: leave out the server");
  const names = profiles.map((profile) => profile.name);
  if (names.includes(name)) return;
  const list = names.length === 0 ? "it has none, so leave out --profile" : `there are ${names.join(", ")}`;
  throw new UsageError(
    `${file ?? "the config"} has no profile ${JSON.stringify(name)}; ${suggest(name, names, list)}`,
  );
}

/** Another user who may write a file, or replace it. */
interface Writer {
  readonly path: string;
  readonly isFolder: boolean;
  /** `group` may be harmless: often the user is alone in it. */
  readonly who: "owner" | "others" | "group";
}

/**
 * Makes sure that no other user decides what a config starts: the file, every folder above it, and the links on the way must
 * belong to this user or root, and not be writable for everybody. Returns warnings for what a group may write. Throws a
 * `ConfigError` that says what to do. On Windows nothing is checked.
 */
export function checkConfigPlace(
  file: string,
  isTrusted: boolean,
  harm = "start any program",
): readonly string[] {
  if (process.getuid === undefined) return [];
  const writers = findWriters(file, process.getuid());
  const wrong = writers.filter(({ who }) => who !== "group" && !isTrusted);
  if (wrong.length > 0)
    throw new ConfigError(
      file,
      wrong.map((writer) => ({ path: "", message: describeWriter(writer, harm) })),
    );
  return writers.filter(({ who }) => who === "group").map((writer) => describeWriter(writer, harm));
}

/** The same for a config and every file that it names: modules, the lock, files of variables, the authorities of callers. */
export function checkPlaces(file: string, config: GatewayConfig, isTrusted: boolean): readonly string[] {
  const { middleware, lock, servers, http } = config;
  const envFiles = servers.flatMap(({ launch }) => {
    if (launch.kind === "openapi") return /^https?:/i.test(launch.api.spec) ? [] : [launch.api.spec];
    if (launch.kind === "graphql") return launch.api.schema ?? [];
    return launch.kind === "http" ? [] : (launch.envFile ?? []);
  });
  const paths = [file, ...middleware, ...(lock === undefined ? [] : [lock.file]), ...envFiles];
  const ca = http.tls?.clientCa;
  const caWarnings = ca === undefined ? [] : checkConfigPlace(ca, isTrusted, "come in as any caller");
  return [...new Set([...paths.flatMap((path) => checkConfigPlace(path, isTrusted)), ...caWarnings])];
}

/**
 * Servers whose arguments name a folder that the config is in, as those of filesystem servers do. A tool that writes there
 * decides what the next start runs.
 */
export function findExposed(file: string, { servers }: GatewayConfig): readonly ConfigIssue[] {
  const real = toRealPath(resolve(file));
  return servers.flatMap(({ name, launch, sandbox }) => {
    if (real === undefined || launch.kind !== "command" || sandbox !== undefined) return [];
    const { args, cwd = "." } = launch;
    const folder = args.find((arg) => arg !== "" && isAbove(resolve(cwd, arg), real));
    const message = `names ${JSON.stringify(folder)}, the folder of this config: a tool that writes there decides what the next start runs; name another folder, or use a sandbox`;
    return folder === undefined ? [] : [{ path: `${name}.args`, message }];
  });
}

function isAbove(folder: string, path: string): boolean {
  const way = relative(toRealPath(folder) ?? folder, path);
  return way !== "" && !isAbsolute(way) && way.split(sep)[0] !== "..";
}

function findWriters(file: string, user: number): readonly Writer[] {
  return listPlaces(file).flatMap(({ path, stats }): readonly Writer[] => {
    const isFolder = stats.isDirectory();
    const { mode, uid, gid } = stats;
    if (uid !== user && uid !== 0) return [{ path, isFolder, who: "owner" }];
    // In a folder with the sticky bit, such as /tmp, only the owner of a file may replace it. Links have no mode of their own.
    if (stats.isSymbolicLink() || (isFolder && (mode & 0o1000) !== 0)) return [];
    if ((mode & 0o002) !== 0) return [{ path, isFolder, who: "others" }];
    // Many systems give each user a group of the same number.
    return (mode & 0o020) !== 0 && gid !== user && gid !== 0 ? [{ path, isFolder, who: "group" }] : [];
  });
}

/** Every folder, link and file on the way to a file: a user who may replace one of them decides where the way leads. */
function listPlaces(file: string): readonly {
  readonly path: string;
  readonly stats: Stats;
}[] {
  const named = resolve(file);
  // A pipe has no place, and the reader reports a missing file. The system refuses links in a circle.
  if (toRealPath(named) === undefined) return [];
  const { root } = parse(named);
  const places = new Map([[root, lstatSync(root)]]);
  const rest = named.slice(root.length).split(sep);
  for (let at = root; rest.length > 0;) {
    const path = join(at, rest.shift() ?? "");
    const stats = lstatSync(path);
    places.set(path, stats);
    const target = stats.isSymbolicLink() ? readlinkSync(path) : undefined;
    if (target === undefined) at = path;
    else {
      if (isAbsolute(target)) at = root;
      rest.unshift(...target.split(sep));
    }
  }
  return Array.from(places, ([path, stats]) => ({ path, stats }));
}

function toRealPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function describeWriter({ path, isFolder, who }: Writer, harm: string): string {
  const what = isFolder ? `its folder ${path}` : path;
  if (who === "owner")
    return `${what} belongs to another user, who could then ${harm}: make it yours, or write --unsafe-config`;
  const mode = who === "others" ? "o-w" : "g-w";
  const whom = who === "others" ? "every user" : "the users of its group";
  const instead = who === "others" ? ", or write --unsafe-config" : "";
  return `${what} may be written by ${whom}, who could then ${harm}: run chmod ${mode} ${path}${instead}`;
}

/** A config that a person agreed to: where it is, and the hash of what it held. */
interface AgreedConfig {
  readonly path: string;
  readonly sha256: string;
}

/** The oldest agreements are forgotten beyond this number. */
const maxAgreements = 200;
const maxBytes = 1024 * 1024;

/** Whether a person agreed to use this file with this text. */
export function isAgreed(file: string, text: string): boolean {
  const { path, sha256 } = toAgreement(file, text);
  return readAgreements().some((agreed) => agreed.path === path && agreed.sha256 === sha256);
}

/** Remembers that a person agreed. Another text of the same file is no longer agreed to. Throws the system's error. */
export function rememberAgreement(file: string, text: string): void {
  const agreement = toAgreement(file, text);
  const others = readAgreements().filter(({ path }) => path !== agreement.path);
  const agreed = [agreement, ...others].slice(0, maxAgreements);
  writePrivateFile(agreementsFile(), `${JSON.stringify({ agreed }, undefined, 2)}\n`);
}

const agreementsFile = (): string => join(stateFolder(), "agreed-configs.json");

function toAgreement(file: string, text: string): AgreedConfig {
  return { path: realpathSync(resolve(file)), sha256: createHash("sha256").update(text).digest("hex") };
}

/** A file that cannot be read or is damaged holds no agreement: the person is asked again. */
function readAgreements(): readonly AgreedConfig[] {
  const text = readPrivateFile(agreementsFile(), maxBytes);
  if (text === undefined) return [];
  try {
    const { agreed } = JSON.parse(text) as { readonly agreed?: unknown };
    return Array.isArray(agreed) ? agreed.filter(isAgreement) : [];
  } catch {
    return [];
  }
}

function isAgreement(value: unknown): value is AgreedConfig {
  if (typeof value !== "object" || value === null) return false;
  const { path, sha256 } = value as JsonObject;
  return typeof path === "string" && typeof sha256 === "string";
}

/** A config that was found in the current folder, and not named. */
interface FoundConfig {
  readonly file: string;
  readonly text: string;
}

/**
 * Makes sure that a person agreed to a config that was found: a folder that was downloaded may have one that starts anything.
 * Asks on the terminal, once for each text of the file; `mayAsk` is false where the standard input is not the person's.
 * Throws a {@link UsageError} when there is no agreement.
 */
async function assertAgreed(found: FoundConfig, mayAsk: boolean): Promise<void> {
  const { file, text } = found;
  const instead = `write --config ${file} to use it`;
  // A config that names us without a config of our own would start us again and again.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError(`${file} was found here by a gateway that another gateway started; ${instead}`);
  if (isAgreed(file, text)) return;
  if (!mayAsk || !process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(
      `${file} was found here, and you have not agreed to start what it names; ${instead}`,
    );
  await note(describeFound(found));
  if (!(await isAccepted("Use it, now and while it stays as it is? (y/N): ")))
    throw new UsageError(`${file} is not used; ${instead}`);
  try {
    rememberAgreement(file, text);
  } catch (error) {
    await note(`junctor: warning: the answer cannot be remembered: ${describeError(error)}\n`);
  }
}

/** Asks a person at the terminal. */
export async function isAccepted(question: string): Promise<boolean> {
  using interruption = watchInterrupt();
  const answer = await withTerminal(interruption.interrupt, interruption.signal, (ask) => ask(question));
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

/** What the config would run or reach, as the file writes it. */
function describeFound({ file, text }: FoundConfig): string {
  const rows = listLaunches(file, text).map((launch) => [launch.name, launch.text].map(toSafeLine));
  const lines = toRows(rows).map((row) => `  ${row}`);
  const head = `Found ${toSafeLine(resolve(file))}, which you have not used like this before. It names:`;
  return [head, "", ...(lines.length === 0 ? ["  no servers"] : lines), "", ""].join("\n");
}
