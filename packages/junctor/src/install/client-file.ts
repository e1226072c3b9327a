import { Buffer } from "node:buffer";
import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { JsonObject } from "@junctor/core/json";
import type { ClientPlace, ClientProgram } from "./clients.ts";
import { readJsonSection, type SectionEdit, SpliceError, spliceJson } from "./json-splice.ts";

/** A file as it was read. */
export interface TextFile {
  /** Where it is, links followed. */
  readonly path: string;
  readonly text: string;
  readonly exists: boolean;
  readonly mode: number;
}

const maxBytes = 32 * 1024 * 1024;

/** Reads a file that may be missing. Throws a `SpliceError` when it cannot be read as text. */
export function readClientFile(file: string): TextFile {
  if (!existsSync(file)) {
    if (isLink(file)) throw new SpliceError(file, "is a link that leads nowhere: remove it");
    const folder = dirname(file);
    const path = existsSync(folder) ? join(realpathSync(folder), basename(file)) : file;
    return { path, text: "", exists: false, mode: 0o600 };
  }
  const path = realpathSync(file);
  const stats = statSync(path);
  if (!stats.isFile()) throw new SpliceError(file, "is not a file");
  if (stats.size > maxBytes) throw new SpliceError(file, "is larger than 32 MiB");
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
    return { path, text, exists: true, mode: stats.mode & 0o777 };
  } catch (error) {
    const { code = "it is not UTF-8" } = error as NodeJS.ErrnoException;
    throw new SpliceError(file, code === "ERR_ENCODING_INVALID_ENCODED_DATA" ? "it is not UTF-8" : code);
  }
}

/**
 * Writes a file beside its place, with the mode it had, and moves it there, unless another program changed it meanwhile. Throws a
 * `SpliceError`; then nothing was changed.
 */
export function writeClientFile({ path, text: before, exists, mode }: TextFile, text: string): void {
  if (exists && (mode & 0o200) === 0)
    throw new SpliceError(path, "it is read-only: run chmod u+w, then again");
  const next = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(next, text, { mode, flag: "wx", flush: true });
    chmodSync(next, mode); // The umask took some of it.
    const now = readClientFile(path);
    if (now.exists !== exists || now.text !== before)
      throw new SpliceError(path, "another program changed it meanwhile: try again");
    renameSync(next, path);
  } catch (error) {
    rmSync(next, { force: true });
    if (error instanceof SpliceError) throw error;
    throw new SpliceError(
      path,
      `it cannot be written (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
    );
  }
}

export function sha256Of(text: string): string {
  return createHash("sha256").update(Buffer.from(text)).digest("hex");
}

/** The file of a client that counts: the first that exists, else the first whose folder does, else the first. */
export function fileOf(client: ClientProgram, place: ClientPlace): string {
  const files = client.files(place);
  return (
    files.find((file) => existsSync(file)) ??
    files.find((file) => existsSync(dirname(file))) ??
    files[0] ??
    ""
  );
}

/** The servers in a file of a client. Throws a `SpliceError` when it is malformed. */
export async function readSection(
  { format, section }: Pick<ClientProgram, "format" | "section">,
  file: string,
  text: string,
): Promise<JsonObject> {
  if (format === "json") return readJsonSection(file, text, section);
  const value =
    format === "toml"
      ? (await import("./toml-splice.ts")).parseToml(file, text)
      : (await import("./yaml-splice.ts")).parseYaml(file, text);
  const found = value[section] ?? {};
  if (typeof found !== "object" || Array.isArray(found))
    throw new SpliceError(file, `${section} holds no servers by name`);
  return found as JsonObject;
}

/** Edits a section of a client's file in its own format. */
export async function spliceSection(
  format: ClientProgram["format"],
  file: string,
  text: string,
  edit: SectionEdit,
): Promise<string> {
  if (format === "json") return spliceJson(file, text, edit);
  if (format === "toml") return (await import("./toml-splice.ts")).spliceToml(file, text, edit);
  return (await import("./yaml-splice.ts")).spliceYaml(file, text, edit);
}

function isLink(file: string): boolean {
  return lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
