const full = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Audit records cannot be written. */
export class AuditError extends Error {
  override readonly name = "AuditError";
  readonly code = "audit.file";
  readonly path: string;

  constructor(path: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`Audit records cannot be written to ${path}: ${why}.${adviseOn(cause)}`, { cause });
    this.path = path;
  }
}

function adviseOn(cause: unknown): string {
  if (!(cause instanceof Error)) return "";
  const { code = "" } = cause as NodeJS.ErrnoException;
  return full.has(code)
    ? " Make room on its disk: writing is tried again with the next call."
    : " Name a file in a folder this user may write to.";
}
