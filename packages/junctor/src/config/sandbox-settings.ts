import { resolve, sep } from "node:path";
import { defined } from "@junctor/core/options";
import { type ConfigValue, refuse, toObject, warn } from "./config-value.ts";
import type { SandboxConfig } from "./sandbox-config.ts";
import { readFlag, readList, readNumber, readObject, readText, refuseUnknownKeys } from "./value-readers.ts";

const example = 'true, or { "network": true, "read": ["./data"], "write": ["./notes"] }';

/** What `sandbox` says: `true` is a sandbox with nothing but the system in it, `false` none where the defaults have one. */
export function readSandbox(given: ConfigValue): SandboxConfig | false | undefined {
  if (typeof given.value === "boolean") return given.value ? { network: false, read: [], write: [] } : false;
  const object = toObject(given) ?? readObject(given, example);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, ["network", "read", "write", "memoryMb", "processes"]);
  const write = readPaths(object.get("write"), "write");
  const read = readPaths(object.get("read"), "read");
  warnOfConfig(object.get("write"), write);
  refuseNested(given, [...read, ...write], write);
  return {
    network: readFlag(object.get("network")) ?? false,
    read,
    write,
    ...defined({
      memoryMb: readNumber(object.get("memoryMb"), { min: 16, max: 1_048_576, example: 512 }),
      processes: readNumber(object.get("processes"), { min: 1, max: 100_000, example: 64 }),
    }),
  };
}

/** Absolute paths, without a slash at their end. */
function readPaths(given: ConfigValue, key: string): readonly string[] {
  const { folder = "." } = given.findings.source;
  return readList(given, `"${key}": ["./data"]`, (item) => {
    const path = readText(item, '"./data"');
    return path === undefined ? undefined : resolve(folder, path);
  });
}

/** A server that can write the config decides what runs after the next start, outside of every sandbox. */
function warnOfConfig(given: ConfigValue, write: readonly string[]): void {
  const { file, folder } = given.findings.source;
  if (folder === undefined) return;
  const config = resolve(file);
  if (write.some((path) => config === path || isInside(config, path)))
    warn(given, "lets the server write this config: name a folder beside it");
}

/** The server could replace a folder in one that it may write by a link to any other, which would be shown at its next start. */
function refuseNested(given: ConfigValue, paths: readonly string[], write: readonly string[]): void {
  for (const path of paths)
    if (write.some((folder) => isInside(path, folder)))
      refuse(
        given,
        `names ${path}, which lies in a folder that it may write: leave out the one in the other`,
      );
}

function isInside(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}
