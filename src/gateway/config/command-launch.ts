import { resolve } from "node:path";
import type { Group, Part } from "./config-value.ts";
import type { ServerLaunch } from "./config.ts";
import { readEnvFile } from "./env-file.ts";
import { readAnyText, readGroup, readList, readText } from "./value-readers.ts";

const argsExample = '"args": ["--port", "1"]';
const envExample = '"env": { "NAME": "value" }';

/** A server that is started here. */
export function readCommandLaunch(entry: Group): ServerLaunch | undefined {
  const { reading } = entry;
  if (entry.has("headers"))
    reading.warn(entry.get("headers").path, "is not used: it is for servers with a url");
  const command = readText(entry.get("command"), '"command": "npx"');
  const args = entry.has("args")
    ? readList(entry.get("args"), argsExample, (item) => readAnyText(item, argsExample))
    : [];
  if (command !== undefined && args.length === 0 && /^[^/\\]+ /.test(command))
    reading.warn(
      entry.get("command").path,
      `has spaces in it: write arguments into args, such as ${argsExample}`,
    );
  const env = { ...readEnvFile(entry.get("envFile")), ...readEnv(entry.get("env")) };
  Object.values(env).forEach(reading.hide);
  const folder = readText(entry.get("cwd"), '"cwd": "./folder"');
  const base = reading.source.folder;
  const cwd = folder === undefined || base === undefined ? folder : resolve(base, folder);
  return command === undefined ? undefined : { kind: "command", command, args, env, cwd };
}

function readEnv(part: Part): { readonly [name: string]: string } {
  const group = readGroup(part, envExample);
  const entries: [string, string][] = [];
  for (const [name, at] of group?.entries() ?? []) {
    if (name === "" || /[=\0]/.test(name))
      part.reading.issue(at.path, `is not the name of a variable: write ${envExample}`);
    // VS Code takes numbers too.
    const value = typeof at.value === "number" ? String(at.value) : readAnyText(at, '"value"');
    if (value !== undefined) entries.push([name, value]);
  }
  return Object.fromEntries(entries);
}
