/** The stable name of a fault in a skill. */
export type SkillErrorCode =
  /** A folder or a listed entry that is no skill. */
  | "skill.invalid"
  /** More files, or more bytes, than a skill may have. */
  | "skill.too_large"
  /** A link leads out of the folder of skills. */
  | "skill.outside"
  /** A file is not as its skill says: another size, digest or front matter. */
  | "skill.unverified"
  /** A file that its skill does not list. */
  | "skill.unlisted";

/** A skill that cannot be served, or must not be used. */
export class SkillError extends Error {
  override readonly name = "SkillError";
  readonly code: SkillErrorCode;
  /** The skill or the file: a URI, or a path while a folder is read. */
  readonly subject: string;

  constructor(code: SkillErrorCode, subject: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.subject = subject;
  }
}
