import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { JsonObject } from "@junctor/core/json";
import {
  isOurEntry,
  type Launcher,
  type OurEntry,
  ourName,
  toClientEntry,
  toOurEntry,
} from "./client-entry.ts";
import {
  fileOf,
  readClientFile,
  readSection,
  sha256Of,
  spliceSection,
  type TextFile,
  writeClientFile,
} from "./client-file.ts";
import type { ClientPlace, ClientProgram } from "./clients.ts";
import { SpliceError } from "./json-splice.ts";
import { forgetInstalled, keepBackup, type LedgerEntry, noteInstalled, readBackup } from "./ledger.ts";
import { addServers, type ConfigEdit, whyRefused, writeOurConfig } from "./our-config.ts";

/** What an installation would do. Nothing is done yet. */
export interface InstallPlan {
  readonly client: ClientProgram;
  readonly file: TextFile;
  /** The client's file as it would be. */
  readonly text: string;
  readonly config: ConfigEdit;
  readonly entry: object;
  /** Servers that are taken over, by their names in the client. */
  readonly imported: ReadonlyMap<string, OurEntry>;
  /** The settings of those servers that our config does not have. */
  readonly dropped: ReadonlyMap<string, readonly string[]>;
  /** Servers that stay with the client, and why. */
  readonly stays: ReadonlyMap<string, string>;
  /** Servers that are taken out of the client's file, as they were written. */
  readonly removed: JsonObject;
  readonly replaced: unknown;
}

/** Reads a client's file and plans the edit of it and of our config. Throws a `SpliceError` when it is malformed. */
export async function planInstall(
  client: ClientProgram,
  options: {
    readonly place: ClientPlace;
    readonly launcher: Launcher;
    /** The path of our config. */
    readonly config: string;
    /** Whether servers stay in the client's file, too. */
    readonly keeps: boolean;
    /** Another file than the client's usual one. */
    readonly file?: string | undefined;
    /** Our config as earlier plans would leave it, where they are not carried out. */
    readonly pending?: TextFile | undefined;
  },
): Promise<InstallPlan> {
  const { place, launcher, config: configFile, keeps } = options;
  const file = readClientFile(options.file ?? fileOf(client, place));
  const servers = await readSection(client, file.path, file.text);
  const imported = new Map<string, OurEntry>();
  const dropped = new Map<string, readonly string[]>();
  const stays = new Map<string, string>();
  for (const [name, value] of Object.entries(servers)) {
    if (name === ourName || isOurEntry(value)) continue; // We would start ourselves.
    const taken = toOurEntry(client, value);
    const why = taken.kind === "entry" ? whyRefused(name, taken.entry) : taken.why;
    if (taken.kind !== "entry" || why !== undefined) {
      stays.set(name, why ?? "");
      continue;
    }
    imported.set(name, taken.entry);
    if (taken.dropped.length > 0) dropped.set(name, taken.dropped);
  }
  const config = addServers(configFile, client.id, imported, options.pending);
  const entry = toClientEntry(client, launcher, place);
  const set = new Map([[ourName, entry]]);
  const names = keeps ? [] : [...imported.keys()];
  const edited = await spliceOrKeep(client, file, { section: client.section, set, remove: names });
  for (const name of edited.kept)
    stays.set(name, "it is written in a way that cannot be taken out; take it out by hand");
  const removed = Object.fromEntries(
    names.filter((name) => !edited.kept.includes(name)).map((name) => [name, servers[name]]),
  );
  return {
    client,
    file,
    text: edited.text,
    config,
    entry,
    imported,
    dropped,
    stays,
    removed,
    replaced: servers[ourName],
  };
}

/** Where servers cannot be taken out, ours is added beside them. */
async function spliceOrKeep(
  { format }: ClientProgram,
  { path, text }: TextFile,
  edit: Parameters<typeof spliceSection>[3],
): Promise<{ readonly text: string; readonly kept: readonly string[] }> {
  try {
    return { text: await spliceSection(format, path, text, edit), kept: [] };
  } catch (error) {
    if (!(error instanceof SpliceError) || edit.remove.length === 0) throw error;
    return { text: await spliceSection(format, path, text, { ...edit, remove: [] }), kept: edit.remove };
  }
}

/** Writes our config first: a server is in one of the two files at every moment. */
export function applyInstall({ client, file, text, config, removed, replaced }: InstallPlan): void {
  if (config.text !== config.file.text) writeOurConfig(config.file, config.text);
  if (text === file.text) return;
  const backup = keepBackup(client.id, file.text);
  const takeBack = noteInstalled({
    client: client.id,
    file: file.path,
    existed: file.exists,
    backup,
    sha256Before: sha256Of(file.text),
    sha256After: sha256Of(text),
    removed,
    ...(replaced === undefined ? {} : { replaced }),
  });
  try {
    writeClientFile(file, text);
  } catch (error) {
    takeBack();
    throw error;
  }
}

/** How a file is restored. */
interface Restored {
  /** `restored`: it gets the bytes it had before. `merged`: it was edited since, so our part is taken out and the servers are put back. */
  readonly kind: "restored" | "merged";
  readonly file: TextFile;
  /** Undefined when there is to be no file. */
  readonly text: string | undefined;
  /** The file as the ledger names it. */
  readonly noted: string;
}

/** Plans what uninstalling does. Throws a `SpliceError` when the file is malformed now. */
export async function planUninstall(client: ClientProgram, entry: LedgerEntry): Promise<Restored> {
  const file = readClientFile(entry.file);
  const noted = entry.file;
  const isGone = !file.exists && (!entry.existed || !existsSync(dirname(file.path)));
  if (isGone) return { kind: "restored", file, text: undefined, noted };
  const backup = readBackup(entry);
  const isUntouched =
    sha256Of(file.text) === entry.sha256After &&
    backup !== undefined &&
    sha256Of(backup) === entry.sha256Before;
  if (isUntouched) return { kind: "restored", file, text: entry.existed ? backup : undefined, noted };
  const servers = await readSection(client, file.path, file.text);
  const back = Object.entries(entry.removed).filter(([name]) => !Object.hasOwn(servers, name));
  const replaced = entry.replaced === undefined ? [] : [[ourName, entry.replaced] as const];
  const set = new Map([...back, ...replaced]);
  const edit = { section: client.section, set, remove: Object.hasOwn(servers, ourName) ? [ourName] : [] };
  const text = await spliceSection(client.format, file.path, file.text, edit);
  return { kind: "merged", file, text, noted };
}

export function applyUninstall({ file, text, noted }: Restored): void {
  if (text === undefined) rmSync(file.path, { force: true });
  else if (text !== file.text) writeClientFile(file, text);
  forgetInstalled(noted);
}

/**
 * Installs into a client whose file only its own program may edit: Claude Code rewrites `~/.claude.json` all the time, and an edit
 * beside that is lost, or breaks it. Throws a `SpliceError` that says what to run when the program is missing.
 */
export function installByCommand({ client, file, config, entry, removed, replaced }: InstallPlan): void {
  if (config.text !== config.file.text) writeOurConfig(config.file, config.text);
  const takeBack = noteInstalled({
    client: client.id,
    file: file.path,
    existed: file.exists,
    // There is nothing to restore byte for byte: the program changes the file all the time.
    backup: "",
    sha256Before: sha256Of(file.text),
    sha256After: "",
    removed,
    ...(replaced === undefined ? {} : { replaced }),
  });
  const entryText = JSON.stringify({ type: "stdio", ...entry });
  try {
    if (replaced !== undefined) run(client, file.path, ["mcp", "remove", "-s", "user", ourName]);
    run(client, file.path, ["mcp", "add-json", "-s", "user", ourName, entryText]);
  } catch (error) {
    takeBack();
    throw error;
  }
  for (const name of Object.keys(removed)) run(client, file.path, ["mcp", "remove", "-s", "user", name]);
}

/** Takes our entry out by the client's own program, and puts back the servers that are missing. */
export async function uninstallByCommand(client: ClientProgram, entry: LedgerEntry): Promise<void> {
  const { file, removed, replaced } = entry;
  const servers = await readSection(client, file, readClientFile(file).text);
  if (Object.hasOwn(servers, ourName)) run(client, file, ["mcp", "remove", "-s", "user", ourName]);
  const missing = Object.entries(removed).filter(([name]) => !Object.hasOwn(servers, name));
  const back = replaced === undefined ? missing : [...missing, [ourName, replaced] as const];
  for (const [name, value] of back)
    run(client, file, ["mcp", "add-json", "-s", "user", name, JSON.stringify(value)]);
  forgetInstalled(file);
}

function run({ command = "", title }: ClientProgram, file: string, args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8", timeout: 60_000 });
  if (error !== undefined)
    throw new SpliceError(
      file,
      `only ${title} itself may edit it, and ${command} cannot be run (${error.message}): install ${command}, or put it into the PATH, and try again`,
    );
  if (status !== 0)
    throw new SpliceError(file, `${command} ${args.slice(0, 5).join(" ")} failed: ${stderr.trim()}`);
}
