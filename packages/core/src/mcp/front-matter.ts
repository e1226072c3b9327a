import { SkillError } from "../errors/index.ts";
import { type FrontMatter, isSkillName } from "./skill.ts";

/** A front matter is short: this much is more than any person writes. */
const maxLength = 64 * 1024;

/** The block between the first two lines of three dashes. */
const block = /^\u{feff}?---[ \t]*\r?\n(?<yaml>[\s\S]*?)(?:(?<=\n)|\r?\n)---[ \t]*(?:\r?\n|$)/u;

/**
 * Reads the front matter of a `SKILL.md` as YAML 1.2, so dates stay strings. The parser is loaded with the first skill. Rejects with a
 * `SkillError` for a text without one, and for one that is no JSON or has no sound name and description.
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
    throw invalid(subject, `its front matter is no YAML: ${firstLine(error)}`, error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw invalid(subject, "its front matter is no list of fields such as name: …");
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

/** Deeper than any front matter; what contains itself is deeper still. */
const maxDepth = 16;

/** Infinities, and what contains itself, have no JSON. */
function isJson(value: unknown, depth = 0): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  return depth < maxDepth && Object.values(value).every((member) => isJson(member, depth + 1));
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "";
}

function invalid(subject: string, why: string, cause?: unknown): SkillError {
  return new SkillError("skill.invalid", subject, `The skill ${subject} cannot be used: ${why}`, cause);
}
