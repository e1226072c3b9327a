import { Buffer } from "node:buffer";
import { createHmac, randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "@junctor/core/async";
import type { ListPart } from "@junctor/core/fit";
import { RawJson, scanElements } from "@junctor/core/json";
import { definitionOf, fromDefinition, withMembers } from "@junctor/core/mcp";
import {
  type ServerConfig,
  createPrivateFile,
  readPrivateFile,
  writePrivateFileAsync,
} from "../config/index.ts";
import { type GatewayLog, hideInData } from "../log/index.ts";
import { type Listed, listParts } from "../upstream/index.ts";

/** Lists that are larger are not remembered. */
const maxBytes = 8 * 1024 * 1024;

/** How long the first write for a server waits for further lists, and how long each later one does. */
const firstWriteMs = 500;
const nextWriteMs = 30_000;

/** How long a server may take to list before it is remembered as missed. */
const missedMs = 5000;

/** The oldest files are removed when all of them together are larger. */
const maxTotalBytes = 64 * 1024 * 1024;

/** How long after a write old files are removed. A gateway with many servers writes many files, and looks at the folder once. */
const pruneMs = 5000;

/** A temporary file older than this was left by a process that was killed: writing takes moments. */
const leftOverMs = 60 * 60_000;

/** Files of another version are ignored. Increment it when the checks of listed things, or the format, change. */
const version = 3;

const extension = ".lists";

/** The content of the file of a server that listed nothing. */
const missedText = '"missed"';

/** The content of another file, of a server that asks its callers something. */
const askedText = '"asked"';

/** A file that is to be written. */
interface Pending {
  readonly listed: Listed | "missed";
  readonly stopTimer: () => void;
}

interface ListMemoryOptions {
  /** Where the files are; it is made when it is first needed. */
  readonly folder: string;
  /** Takes the secrets of the config out of JSON text. */
  readonly hide: (json: string) => string;
  readonly log: GatewayLog;
  readonly clock?: Clock;
  /** The most files; the oldest are removed first. 2,000. */
  readonly maxFiles?: number;
}

/**
 * What servers listed last, kept in files between runs of the gateway. A file is named by a keyed hash of the launch of its server: a
 * command with another argument, variable or header lists other things, and the name must not help an attacker to guess a token.
 * Trouble with the disk is logged and hurts no call.
 */
export class ListMemory {
  readonly #options: ListMemoryOptions;
  readonly #clock: Clock;
  readonly #files: ReturnType<typeof createFileFormat>;
  readonly #pending = new Map<string, Pending>();
  readonly #written = new Map<string, string>();
  #writing: Promise<void> = Promise.resolve();
  #hasWarned = false;
  #stopPruning: (() => void) | undefined;

  constructor(options: ListMemoryOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#files = createFileFormat(options.folder);
  }

  /** What this server listed when it was last launched in the same way; undefined when that is not known. */
  recall(server: ServerConfig): Listed | undefined {
    return this.#orWarn(() => {
      const text = this.#read(server);
      return text === undefined || text === missedText ? undefined : fromText(text);
    });
  }

  /** Whether it never listed anything, though it was waited for or failed, when it was last launched in the same way. */
  wasMissed(server: ServerConfig): boolean {
    return this.#orWarn(() => this.#read(server)) === missedText;
  }

  /** Whether it asked its callers something when it was launched in the same way before. */
  hasAsked(server: ServerConfig): boolean {
    return this.#orWarn(() => this.#read(server, askedText)) === askedText;
  }

  /** Remembers that a server asks its callers something. */
  noteAsked(server: ServerConfig): void {
    this.#orWarn(() => {
      if (this.#read(server, askedText) === askedText) return;
      const path = this.#files.pathOf(server, askedText);
      void this.#enqueue(() => writePrivateFileAsync(path, this.#files.toFile(askedText)));
    });
  }

  /** Remembers what a server lists now. The file is written a little later, and not more often than every 30 s. */
  keep(server: ServerConfig, listed: Listed): void {
    if (!listed.areToolsConfirmed) return;
    this.#orWarn(() => {
      const path = this.#files.pathOf(server);
      const isFirst = (this.#written.get(path) ?? missedText) === missedText;
      this.#writeLater(path, listed, isFirst ? firstWriteMs : nextWriteMs);
    });
  }

  /** Remembers, a little later, that a server which never listed anything is waited for or has failed; unless it lists until then. */
  miss(server: ServerConfig): void {
    this.#orWarn(() => {
      const path = this.#files.pathOf(server);
      if (!this.#pending.has(path) && !this.#written.has(path)) this.#writeLater(path, "missed", missedMs);
    });
  }

  /** Resolves when everything is written. */
  async flush(): Promise<void> {
    for (const path of this.#pending.keys()) void this.#enqueue(() => this.#write(path));
    await this.#writing;
    if (this.#stopPruning !== undefined) await this.#prune();
  }

  #read(server: ServerConfig, what?: string): string | undefined {
    return this.#files.read(this.#files.pathOf(server, what));
  }

  /** Writes one after the other. */
  #enqueue(work: () => Promise<void>): Promise<void> {
    return (this.#writing = this.#writing.then(work).catch((error: unknown) => this.#warn(error)));
  }

  #writeLater(path: string, listed: Pending["listed"], delayMs: number): void {
    const waiting = this.#pending.get(path);
    const isDue = waiting !== undefined && waiting.listed !== "missed";
    if (!isDue) waiting?.stopTimer();
    const stopTimer = isDue
      ? waiting.stopTimer
      : this.#clock.timer(delayMs, () => void this.#enqueue(() => this.#write(path)));
    this.#pending.set(path, { listed, stopTimer });
  }

  async #write(path: string): Promise<void> {
    const { listed, stopTimer } = this.#pending.get(path) ?? {};
    stopTimer?.();
    this.#pending.delete(path);
    if (listed === undefined) return;
    // Another gateway may have seen it list meanwhile.
    if (listed === "missed" && this.#files.read(path) !== undefined) return;
    const text = listed === "missed" ? missedText : toText(listed, this.#options.hide);
    if (this.#written.get(path) === text) return;
    if (text.length > maxBytes) return rm(path, { force: true });
    await writePrivateFileAsync(path, this.#files.toFile(text));
    this.#written.set(path, text);
    this.#stopPruning ??= this.#clock.timer(pruneMs, () => void this.#prune());
  }

  #prune(): Promise<void> {
    this.#stopPruning?.();
    this.#stopPruning = undefined;
    const { folder, maxFiles = 2000 } = this.#options;
    return this.#enqueue(() => prune(folder, maxFiles));
  }

  #orWarn<T>(work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#warn(error);
      return undefined;
    }
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { folder, log } = this.#options;
    log.warn({ folder, error: String(error) }, "lists of servers cannot be remembered in this folder");
  }
}

/** The names of files and what they begin with: hashes by a key of this user. */
function createFileFormat(folder: string) {
  let salt: string | undefined;
  return {
    pathOf: (server: ServerConfig, what = ""): string => {
      salt ??= readSalt(folder);
      return join(folder, `${macOf(describeLaunch(server) + what, salt)}${extension}`);
    },
    /** Undefined for a file that another program changed, or another version wrote: it was not checked as ours are. */
    read: (path: string): string | undefined => {
      const file = readPrivateFile(path, maxBytes + 100) ?? "";
      const at = file.indexOf("\n");
      const text = file.slice(at + 1);
      return file.slice(0, at) === macOf(text, salt ?? "") ? text : undefined;
    },
    toFile: (text: string): string => `${macOf(text, salt ?? "")}\n${text}`,
  };
}

/** The key of the hashes, made once for each user. Two processes that make it at once both use the one that was first. */
function readSalt(folder: string): string {
  const path = join(folder, "salt");
  const known = readPrivateFile(path, 100);
  if (known !== undefined && known.length >= 32) return known;
  createPrivateFile(path, randomBytes(32).toString("hex"));
  const made = readPrivateFile(path, 100) ?? "";
  if (made.length < 32) throw new Error(`${path} holds no key of ours: remove it`);
  return made;
}

/** Tells unchanged files of this version from others. */
function macOf(text: string, salt: string): string {
  return createHmac("sha256", salt).update(`${version}\n${text}`).digest("hex");
}

/** A command without a folder of its own runs in ours, where the same words may be another program. */
function describeLaunch({ launch }: ServerConfig): string {
  return JSON.stringify(launch.kind === "command" ? { ...launch, cwd: launch.cwd ?? process.cwd() } : launch);
}

function toText(listed: Listed, hide: (json: string) => string): string {
  const parts = listParts.map((part) => {
    const items = listed[part].flatMap((item) => toSafeDefinition(item, hide) ?? []);
    return `${JSON.stringify(part)}:[${items.join(",")}]`;
  });
  return `{${parts.join(",")}}`;
}

/** Secrets are taken out of a description. An item that has one elsewhere would be another item without it, and is left out. */
function toSafeDefinition(
  item: object & { readonly description?: string },
  hide: (json: string) => string,
): string | undefined {
  const { text } = definitionOf(item);
  if (hide(text) === text) return text;
  const description = hideInData(item.description, hide);
  const safe = definitionOf(withMembers(item, { description })).text;
  return hide(safe) === safe ? safe : undefined;
}

/** The lists in a text that {@link toText} wrote. */
function fromText(text: string): Listed {
  const raw = RawJson.parse(Buffer.from(text));
  const read = <P extends ListPart>(part: P): Listed[P] => {
    const array = raw.at(part);
    if (array?.kind !== "array") return [];
    const { bytes } = array;
    const items = scanElements(bytes).map(({ start, end }) =>
      RawJson.fromChecked(bytes.subarray(start, end)),
    );
    return items.map((item) => fromDefinition(item)) as unknown as Listed[P];
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
    areToolsConfirmed: false,
  };
}

/** Removes the files that were not written for longest, and what a process that was killed left half written. */
async function prune(folder: string, maxFiles: number): Promise<void> {
  const names = await readdir(folder);
  const found = await Promise.all(
    names.map(async (name) => ({ name, stats: await lookAt(join(folder, name)) })),
  );
  const dated = found.flatMap(({ name, stats }) =>
    stats === undefined || name === "salt" ? [] : [{ name, at: stats.mtimeMs, bytes: stats.size }],
  );
  let keptFiles = 0;
  let keptBytes = 0;
  for (const { name, at, bytes } of dated.toSorted((a, b) => b.at - a.at)) {
    const isLeftOver = !name.endsWith(extension) && at < Date.now() - leftOverMs;
    keptFiles++;
    keptBytes += bytes;
    if (isLeftOver || keptFiles > maxFiles || keptBytes > maxTotalBytes)
      await rm(join(folder, name), { force: true });
  }
}

/** Undefined for a file that another process removed meanwhile. */
function lookAt(path: string): Promise<Stats | undefined> {
  return stat(path).catch(() => undefined);
}
