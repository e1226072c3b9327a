import { lstatSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import { ConfigError, type ConfigIssue } from "@junctor/core/errors";
import type { GatewayConfig } from "../../config/index.ts";

/** Another user who may write a file, or replace it. */
interface Writer {
  readonly path: string;
  readonly isFolder: boolean;
  /** `group` may be harmless: often the user is alone in it. */
  readonly who: "owner" | "others" | "group";
}

/**
 * Makes sure that no other user decides what a config starts: the file, every folder above it, and the links on the way must
 * belong to this user or root, and not be writable for everybody. Gives warnings for what a group may write. Throws a
 * `ConfigError` that says what to do. On Windows there is nothing to see by these means.
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
      wrong.map((writer) => ({ path: "", message: describe(writer, harm) })),
    );
  return writers.filter(({ who }) => who === "group").map((writer) => describe(writer, harm));
}

/** The same for a config and every file that it names: modules, the lock, files of variables, the authorities of callers. */
export function checkPlaces(file: string, config: GatewayConfig, isTrusted: boolean): readonly string[] {
  const { middleware, lock, servers, http } = config;
  const envFiles = servers.flatMap(({ launch }) => (launch.kind === "http" ? [] : (launch.envFile ?? [])));
  const paths = [file, ...middleware, ...(lock === undefined ? [] : [lock.file]), ...envFiles];
  const ca = http.tls?.clientCa;
  const ways = ca === undefined ? [] : checkConfigPlace(ca, isTrusted, "come in as any caller");
  return [...new Set([...paths.flatMap((path) => checkConfigPlace(path, isTrusted)), ...ways])];
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

interface ConfigPlace {
  readonly path: string;
  readonly stats: Stats;
}

/** Every folder, link and file on the way to a file: a user who may replace one of them decides where the way leads. */
function listPlaces(file: string): readonly ConfigPlace[] {
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

function describe({ path, isFolder, who }: Writer, harm: string): string {
  const what = isFolder ? `its folder ${path}` : path;
  if (who === "owner")
    return `${what} belongs to another user, who could then ${harm}: make it yours, or write --unsafe-config`;
  const mode = who === "others" ? "o-w" : "g-w";
  const whom = who === "others" ? "every user" : "the users of its group";
  const instead = who === "others" ? ", or write --unsafe-config" : "";
  return `${what} may be written by ${whom}, who could then ${harm}: run chmod ${mode} ${path}${instead}`;
}
