/** Skills as they are listed (SEP-2640). */

import { SkillError } from "../errors/index.ts";
import type { Meta, Resource } from "./types.ts";

/** One file of a skill, as the skill lists it. */
interface SkillFile {
  readonly uri: string;
  /** `sha256:` and 64 hexadecimal digits, of the bytes of the file. */
  readonly digest: string;
  /** Bytes. Some servers leave it out. */
  readonly size?: number;
}

/** The first block of `SKILL.md`, as YAML 1.2 has it; dates are strings. */
export type FrontMatter = { readonly name: string; readonly description: string } & {
  readonly [field: string]: unknown;
};

/** A skill: instructions for a model, in a file `SKILL.md`, and the files they refer to. */
export interface Skill {
  /** Of its `SKILL.md`. */
  readonly uri: string;
  readonly frontmatter: FrontMatter;
  /** Every file of it, `SKILL.md` included; `dynamic` where the server makes them when they are read. */
  readonly resources: readonly SkillFile[] | "dynamic";
  readonly _meta?: Meta;
}

/** The most that one skill may have. */
export const maxSkillFiles = 512;
export const maxSkillBytes: number = 16 * 1024 * 1024;

/** The MIME type of a folder. */
const folderType = "inode/directory";

const skillName = /^(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$/;
const ending = "/SKILL.md";

/** Whether a text can name a skill. */
function isSkillName(name: string): boolean {
  return skillName.test(name);
}

/** The folder of a skill: the URI of its `SKILL.md` without the file. Undefined for another URI. */
export function skillFolderOf(uri: string): string | undefined {
  return uri.endsWith(ending) && uri.length > ending.length ? uri.slice(0, -ending.length) : undefined;
}

/**
 * Reads an entry as a server listed it. Throws a `SkillError` that says what is wrong: a URI that is not of a `SKILL.md`, a name that
 * is not that of its folder, files elsewhere, twice or without a digest, and more of them than a skill may have.
 */
export function parseSkill(value: unknown): Skill {
  const { uri, frontmatter, resources } = (value ?? {}) as { readonly [member: string]: unknown };
  const folder = typeof uri === "string" ? skillFolderOf(uri) : undefined;
  if (folder === undefined) throw invalid(String(uri), "its uri is not that of a SKILL.md");
  const subject = String(uri);
  const { name, description } = (frontmatter ?? {}) as { readonly [field: string]: unknown };
  if (typeof name !== "string" || !isSkillName(name))
    throw invalid(subject, "its front matter has no sound name");
  if (typeof description !== "string") throw invalid(subject, "its front matter has no description");
  if (folder.slice(folder.lastIndexOf("/") + 1) !== name)
    throw invalid(subject, `its front matter names it ${name}, which is not the name of its folder`);
  if (resources !== "dynamic") assertFiles(subject, folder, resources);
  return value as Skill;
}

function assertFiles(subject: string, folder: string, resources: unknown): void {
  if (!Array.isArray(resources)) throw invalid(subject, 'its resources are neither a list nor "dynamic"');
  if (resources.length > maxSkillFiles)
    throw new SkillError(
      "skill.too_large",
      subject,
      `The skill ${subject} lists more than ${maxSkillFiles} files`,
    );
  const seen = new Set<string>();
  let bytes = 0;
  for (const file of resources as readonly unknown[]) {
    const { uri, digest, size } = (file ?? {}) as { readonly [member: string]: unknown };
    if (typeof uri !== "string" || !isInside(uri, folder))
      throw invalid(subject, `it lists a file outside of its folder: ${String(uri)}`);
    if (seen.has(uri)) throw invalid(subject, `it lists ${uri} twice`);
    seen.add(uri);
    if (typeof digest !== "string" || !/^sha256:[0-9a-f]{64}$/.test(digest))
      throw invalid(subject, `${uri} has no digest of the form sha256:<64 hex>`);
    if (size !== undefined && !(Number.isSafeInteger(size) && (size as number) >= 0))
      throw invalid(subject, `${uri} has a size that is not a number of bytes`);
    bytes += (size as number | undefined) ?? 0;
  }
  if (!seen.has(subject)) throw invalid(subject, "its own SKILL.md is not among its files");
  if (bytes > maxSkillBytes)
    throw new SkillError(
      "skill.too_large",
      subject,
      `The skill ${subject} has more than ${maxSkillBytes} bytes`,
    );
}

/** Whether a URI is below a folder, also for a server that resolves `..` and escapes. */
function isInside(uri: string, folder: string): boolean {
  if (!uri.startsWith(`${folder}/`)) return false;
  const steps = uri.slice(folder.length + 1).split("/");
  return steps.every(
    (step) => step !== "" && !/^(?:\.|%2e){1,2}$/i.test(step) && !/[\\?#]|%2f|%5c/i.test(step),
  );
}

function invalid(subject: string, why: string, cause?: unknown): SkillError {
  return new SkillError("skill.invalid", subject, `The skill ${subject} cannot be used: ${why}`, cause);
}

/**
 * The direct children of a folder, made from the files below it; a folder among them has the type `inode/directory`. Undefined where
 * no file is below it: then it is not a folder. URIs of folders have no slash at their end.
 */
export function childrenOf(folder: string, files: Iterable<Resource>): readonly Resource[] | undefined {
  const children = new Map<string, Resource>();
  for (const file of files) {
    if (!file.uri.startsWith(`${folder}/`)) continue;
    const [step = "", ...deeper] = file.uri.slice(folder.length + 1).split("/");
    const uri = `${folder}/${step}`;
    if (deeper.length === 0) children.set(uri, file);
    else if (!children.has(uri)) children.set(uri, { uri, name: decodeStep(step), mimeType: folderType });
  }
  return children.size === 0 ? undefined : [...children.values()];
}

/** The name of the last step of a URI, as a person reads it. */
function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

/** A front matter is short: this is more than any person writes. */
const maxLength = 64 * 1024;

/** The block between the first two lines of three dashes. */
const block = /^\u{feff}?---[ \t]*\r?\n(?<yaml>[\s\S]*?)(?:(?<=\n)|\r?\n)---[ \t]*(?:\r?\n|$)/u;

/**
 * Reads the front matter of a `SKILL.md` as YAML 1.2, so dates stay strings. The parser is loaded with the
 * first skill. Rejects with a `SkillError` for a text without front matter, and for one whose front matter is
 * not JSON or has no valid name and description.
 */
export async function readFrontMatter(text: string, subject: string): Promise<FrontMatter> {
  const yaml = block.exec(text.slice(0, maxLength))?.groups?.["yaml"];
  if (yaml === undefined)
    throw invalid(subject, "it does not begin with a front matter: write --- , name: …, description: …, ---");
  const { parse } = await import("./yaml.ts");
  let value: unknown;
  try {
    value = parse(yaml, { version: "1.2", schema: "core", maxAliasCount: 16, prettyErrors: true });
  } catch (error) {
    throw invalid(subject, `its front matter is not YAML: ${firstLine(error)}`, error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(subject, "its front matter is not a list of fields such as name: …");
  if (!isJson(value)) throw invalid(subject, "its front matter has a value that JSON cannot hold");
  const { name, description, metadata } = value as { readonly [field: string]: unknown };
  if (typeof name !== "string" || !isSkillName(name))
    throw invalid(
      subject,
      "its name must be 1 to 64 of the characters a-z 0-9 -, without a dash at an end and without two in a row",
    );
  if (typeof description !== "string" || description.trim() === "")
    throw invalid(subject, "its description is missing: say when the skill is of use");
  const reserved = Object.keys(metadata ?? {}).find((key) => key.startsWith("io.modelcontextprotocol/"));
  if (reserved !== undefined)
    throw invalid(subject, `its metadata has the key ${reserved}; that prefix belongs to the protocol`);
  return value as FrontMatter;
}

/** Deeper than any front matter; a cyclic value is deeper still. */
const maxDepth = 16;

/** Infinite numbers and cyclic values have no JSON. */
function isJson(value: unknown, depth = 0): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  return depth < maxDepth && Object.values(value).every((member) => isJson(member, depth + 1));
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "";
}
