import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../async/clock.ts";
import { RawJson } from "../json/raw.ts";
import { scanElements } from "../json/scan.ts";
import { definitionOf, fromDefinition } from "../tools/definition.ts";
import type { ListPart } from "../tools/fit/list-fault.ts";
import type { ServerConfig } from "./config/config.ts";
import type { GatewayLog } from "./log.ts";
import type { Listed } from "./upstream/list-keeper.ts";
import { readPrivateFile, writePrivateFile, writePrivateFileAsync } from "./user-files.ts";

export interface ListMemoryOptions {
  /** Where the files are; it is made when it is first needed. */
  readonly folder: string;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: (json: string) => string;
  readonly log: GatewayLog;
  readonly clock?: Clock;
  /** Most files; the oldest are removed first. 256. */
  readonly maxFiles?: number;
}

/** What servers listed last, kept in files between runs of the gateway. */
export interface ListMemory {
  /** What this server listed when it was last launched in the same way; undefined when that is not known. */
  recall(server: ServerConfig): Listed | undefined;
  /** Remembers what a server lists now. The file is written a little later, and not more often than every 30 s. */
  keep(server: ServerConfig, listed: Listed): void;
  /** Resolves when everything is written. */
  flush(): Promise<void>;
}

/** Lists that are larger are not remembered. */
const maxBytes = 8 * 1024 * 1024;

/** How long the first write for a server waits for lists that come with the first, and every later one for others. */
const firstWriteMs = 500;
const nextWriteMs = 30_000;

/** Files of another format are ignored. */
const version = 1;

/** A list that is to be written. */
interface Pending {
  readonly listed: Listed;
  readonly stopTimer: () => void;
}

/**
 * Opens the memory. A file is named by a keyed hash of the launch of its server: a command with another argument, variable or
 * header lists other things, and the name must not help anybody to guess a token. Trouble with the disk is logged and hurts
 * no call.
 */
export function openListMemory(options: ListMemoryOptions): ListMemory {
  const { folder, hide, log, clock = systemClock, maxFiles = 256 } = options;
  const pending = new Map<string, Pending>();
  const written = new Map<string, string>();
  let writing: Promise<void> = Promise.resolve();
  let salt: string | undefined;
  let hasWarned = false;

  const warn = (error: unknown): void => {
    if (hasWarned) return;
    hasWarned = true;
    log.warn({ folder, error: String(error) }, "lists of servers cannot be remembered in this folder");
  };
  const pathOf = (server: ServerConfig): string => {
    salt ??= readSalt(folder);
    const name = createHmac("sha256", salt).update(JSON.stringify(server.launch)).digest("hex");
    return join(folder, `${name}.json`);
  };
  const write = async (path: string): Promise<void> => {
    const { listed, stopTimer } = pending.get(path) ?? {};
    stopTimer?.();
    pending.delete(path);
    if (listed === undefined) return;
    const text = hide(toText(listed));
    if (written.get(path) === text || text.length > maxBytes) return;
    written.set(path, text);
    await writePrivateFileAsync(path, text);
    await prune(folder, maxFiles);
  };
  const writeNext = (path: string): Promise<void> => (writing = writing.then(() => write(path)).catch(warn));

  return {
    recall: (server) => {
      try {
        const text = readPrivateFile(pathOf(server), maxBytes);
        return text === undefined ? undefined : fromText(text);
      } catch (error) {
        warn(error);
        return undefined;
      }
    },
    keep: (server, listed) => {
      if (!listed.isConfirmed) return;
      try {
        const path = pathOf(server);
        const waiting = pending.get(path);
        const delayMs = written.has(path) ? nextWriteMs : firstWriteMs;
        const stopTimer = waiting?.stopTimer ?? clock.timer(delayMs, () => void writeNext(path));
        pending.set(path, { listed, stopTimer });
      } catch (error) {
        warn(error);
      }
    },
    flush: async () => {
      for (const path of pending.keys()) void writeNext(path);
      await writing;
    },
  };
}

/** The key of the hashes, made once for each user. Of two processes that make it at once, both use what they then find. */
function readSalt(folder: string): string {
  const path = join(folder, "salt");
  const known = readPrivateFile(path, 100);
  if (known !== undefined && known.length >= 32) return known;
  writePrivateFile(path, randomBytes(32).toString("hex"));
  return readPrivateFile(path, 100) ?? "";
}

/** The members without which an item of a list makes no sense. What was written had been checked in full. */
const required: { readonly [P in ListPart]: readonly string[] } = {
  tools: ["name"],
  resources: ["uri", "name"],
  templates: ["uriTemplate", "name"],
  prompts: ["name"],
};

function toText(listed: Listed): string {
  const parts = Object.keys(required).map((part) => {
    const items = listed[part as ListPart].map((item) => definitionOf(item).text);
    return `,${JSON.stringify(part)}:[${items.join(",")}]`;
  });
  return `{"version":${version}${parts.join("")}}`;
}

/** Undefined when the file is not one of ours, or of another version. */
function fromText(text: string): Listed | undefined {
  let raw: RawJson;
  try {
    raw = RawJson.parse(Buffer.from(text));
  } catch {
    return undefined;
  }
  if (raw.kind !== "object" || raw.at("version")?.value !== version) return undefined;
  const read = <P extends ListPart>(part: P): Listed[P] => {
    const array = raw.at(part);
    if (array?.kind !== "array") return [];
    const { bytes } = array;
    const items = scanElements(bytes).map(({ start, end }) =>
      RawJson.fromChecked(bytes.subarray(start, end)),
    );
    const sound = items.filter((item) => required[part].every((key) => item.at(key)?.kind === "string"));
    return sound.map((item) => fromDefinition(item)) as unknown as Listed[P];
  };
  return {
    tools: read("tools"),
    resources: read("resources"),
    templates: read("templates"),
    prompts: read("prompts"),
    hints: { ttlMs: 0, cacheScope: "private" },
    problems: [],
    faults: [],
    isConfirmed: false,
  };
}

/** Removes the files that were not written for longest. */
async function prune(folder: string, maxFiles: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".json"));
  if (names.length <= maxFiles) return;
  const dated = await Promise.all(
    names.map(async (name) => ({ name, at: (await stat(join(folder, name))).mtimeMs })),
  );
  const oldest = dated.toSorted((a, b) => a.at - b.at).slice(0, names.length - maxFiles);
  await Promise.all(oldest.map(({ name }) => rm(join(folder, name), { force: true })));
}
