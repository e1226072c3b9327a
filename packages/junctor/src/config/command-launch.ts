import { resolve } from "node:path";
import { defined } from "@junctor/core/options";
import { type ConfigObject, type ConfigValue, refuse, warn } from "./config-value.ts";
import type { ServerLaunch } from "./config.ts";
import { readEnvFile } from "./env-file.ts";
import { readAnyText, readObject, readList, readText } from "./value-readers.ts";

const argsExample = '"args": ["--port", "1"]';
const envExample = '"env": { "NAME": "value" }';

/** A server that is started here. */
export function readCommandLaunch(entry: ConfigObject): ServerLaunch | undefined {
  const { findings } = entry;
  if (entry.has("headers")) warn(entry.get("headers"), "is not used: it is for servers with a url");
  const given = entry.get("command");
  const isList = Array.isArray(given.value);
  const command = readText(
    given,
    `"command": "npx"${isList ? ` and what follows it into ${argsExample}` : ""}`,
  );
  const args = entry.has("args")
    ? readList(entry.get("args"), argsExample, (item) => readAnyText(item, argsExample))
    : [];
  if (command !== undefined && args.length === 0 && /^[^/\\]+ /.test(command))
    warn(entry.get("command"), `has spaces in it: write arguments into args, such as ${argsExample}`);
  const base = findings.source.folder;
  const toPath = (path: string | undefined): string | undefined =>
    path === undefined || base === undefined ? path : resolve(base, path);
  const envFile = toPath(readText(entry.get("envFile"), '"./.env"'));
  const fromFile = readEnvFile(entry.get("envFile"), envFile);
  const own = readEnv(entry.get("env"));
  const env = { ...fromFile, ...own };
  for (const [name, value] of Object.entries(fromFile))
    findings.hideSecret({ value, names: [name], isLikely: true });
  for (const [name, value] of Object.entries(own))
    findings.hideSecret({ value, names: [name], isLikely: false });
  for (const [index, arg] of args.entries()) {
    const [, name, value] =
      /^--?([\w.-]+)=(.+)$/s.exec(arg) ?? /^--?([\w.-]+)=?$/.exec(args[index - 1] ?? "") ?? [];
    if (name !== undefined) findings.hideSecret({ value: value ?? arg, names: [name], isLikely: false });
  }
  const cwd = toPath(readText(entry.get("cwd"), '"cwd": "./folder"'));
  return command === undefined
    ? undefined
    : { kind: "command", command, args, env, cwd, ...defined({ envFile }) };
}

function readEnv(given: ConfigValue): { readonly [name: string]: string } {
  const object = readObject(given, envExample);
  const entries: [string, string][] = [];
  for (const [name, at] of object?.entries() ?? []) {
    if (name === "" || /[=\0]/.test(name)) refuse(at, `is not the name of a variable: write ${envExample}`);
    // VS Code takes numbers too.
    const value = typeof at.value === "number" ? String(at.value) : readAnyText(at, '"value"');
    if (value !== undefined) entries.push([name, value]);
  }
  return Object.fromEntries(entries);
}
