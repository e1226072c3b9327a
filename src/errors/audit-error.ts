/** Audit records cannot be written. */
export class AuditError extends Error {
  override readonly name = "AuditError";
  readonly code = "audit.file";
  readonly path: string;

  constructor(path: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(
      `Audit records cannot be written to ${path}: ${why}. Name a file in a folder this user may write to.`,
      {
        cause,
      },
    );
    this.path = path;
  }
}
