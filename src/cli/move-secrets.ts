import { join } from "node:path";
import { homeFolder } from "../front/run-folder.ts";
import { writePrivateFile } from "../gateway/user-files.ts";
import type { OurEntry } from "../install/entry-from-client.ts";
import type { Flags } from "./command.ts";

export const secretFlags: Flags = {
  secrets: { help: "keep values of variables in files of their own (~/.junctor/env), not in the config" },
};

interface Moved {
  readonly entries: ReadonlyMap<string, OurEntry>;
  /** Writes the files. */
  readonly write: () => void;
}

/** Entries whose variables are in a file of their own, which only this user may read. References to variables stay. */
export function moveSecrets(entries: ReadonlyMap<string, OurEntry>): Moved {
  const files = new Map<string, string>();
  const moved = Array.from(entries, ([name, entry]): [string, OurEntry] => {
    const { env = {}, envFile, ...rest } = entry;
    const values = Object.entries(env).filter(([, value]) => !value.includes("${"));
    if (values.length === 0 || envFile !== undefined) return [name, entry];
    const file = join(homeFolder(), "env", `${name.replaceAll(/[^\w.-]/g, "_")}.env`);
    files.set(file, values.map(([key, value]) => `${key}=${JSON.stringify(value)}\n`).join(""));
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
