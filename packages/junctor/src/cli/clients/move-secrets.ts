import { readFileSync } from "node:fs";
import { join } from "node:path";
import { homeFolder } from "../../attach/index.ts";
import { readKeychain, writeKeychain, writePrivateFile } from "../../config/index.ts";
import { sha256Of, type OurEntry } from "../../install/index.ts";
import { type Parsed, type SharedValues, UsageError } from "../terminal/index.ts";

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

/** The first of `NAME`, `NAME-2` and so on that is not there or has these values: others may be those of another server. */
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
