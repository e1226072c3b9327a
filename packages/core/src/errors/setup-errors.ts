import { BrandedError } from "./branded-error.ts";
import type { storeError } from "./table.ts";

const full = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

/** Audit records cannot be written. */
export class AuditError extends BrandedError {
  protected static override readonly brand = "AuditError";

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

/** A listener was told to bind an address that others can reach, without a way to know who they are. */
export class BindError extends BrandedError {
  protected static override readonly brand = "BindError";

  override readonly name = "BindError";
  readonly code = "listen.not_loopback";
  readonly host: string;

  constructor(host: string, why: string) {
    super(`Refusing to listen on ${host}: others can reach that address, and ${why}. Use 127.0.0.1 or ::1.`);
    this.host = host;
  }
}

/** One thing that is wrong, or odd, in a config. */
export interface ConfigIssue {
  /** Which setting: `mcpServers.github.comand`, or nothing for the file as a whole. */
  readonly path: string;
  /** Where it stands in the file, counted from 1; undefined where that is not known. */
  readonly at?: { readonly line: number; readonly column: number } | undefined;
  /** What is wrong, and what to write instead. Never a value that came from the environment. */
  readonly message: string;
}

/** A config that cannot be used. It says everything that is wrong at once, a line for each. */
export class ConfigError extends BrandedError {
  protected static override readonly brand = "ConfigError";

  override readonly name = "ConfigError";
  readonly code = "config.invalid";
  readonly file: string;
  readonly issues: readonly ConfigIssue[];

  constructor(file: string, issues: readonly ConfigIssue[], options?: ErrorOptions) {
    const lines = issues.map(({ path, at, message }) => {
      const place = at === undefined ? file : `${file}:${at.line}:${at.column}`;
      return [place, path, message].filter(Boolean).join(": ");
    });
    super(lines.join("\n"), options);
    this.file = file;
    this.issues = issues;
  }
}

/** An operation on the facts that replicas share was not done, or it is not known whether it was. */
export class StoreError extends BrandedError {
  protected static override readonly brand = "StoreError";

  override readonly name = "StoreError";
  readonly code: keyof typeof storeError.codes;

  constructor(code: StoreError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A listener cannot use the certificate, the key or the authority of `tls`. */
export class TlsError extends BrandedError {
  protected static override readonly brand = "TlsError";

  override readonly name = "TlsError";
  readonly code = "listen.tls";

  constructor(cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(
      `The files of "tls" cannot be used: ${reason}. Each must be PEM, and the key that of the certificate.`,
      {
        cause,
      },
    );
  }
}
