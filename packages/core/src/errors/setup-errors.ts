import { BrandedError } from "./branded-error.ts";
import type { storeError, schemaError, sealError, skillError, uriTemplateError } from "./table.ts";
import { jsonError } from "./wire-rows.ts";

const fullDiskCodes = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

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
  return fullDiskCodes.has(code)
    ? " Make room on its disk: writing is tried again with the next call."
    : " Name a file in a folder this user may write to.";
}

/** A listener was to bind an address that others can reach, without a way to know who they are. */
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

/** Every way a JSON text can be refused. Stable: callers and documents may rely on the strings. */
export type JsonErrorCode = keyof typeof jsonError.codes;

/**
 * A JSON text that was refused: `code` says which rule it broke, `offset` at which byte.
 *
 * @example
 * try { scan(bytes, shape) } catch (error) {
 *   if (error instanceof JsonError && error.code === 'json.depth') reply(413)
 * }
 */
export class JsonError extends BrandedError {
  protected static override readonly brand = "JsonError";

  override readonly name = "JsonError";
  readonly code: JsonErrorCode;
  /** Byte offset of the fault, from the start of the refused bytes. */
  readonly offset: number;
  /**
   * The finished scan index, when the text is well-formed JSON and only its keys were refused. It lets a
   * reply carry the request's `id`. A key that occurred twice is absent from it: no occurrence of an
   * ambiguous key can be trusted.
   */
  readonly index: readonly number[] | undefined;

  /** `problem` says what was wrong and with which value, without a full stop. */
  constructor(code: JsonErrorCode, offset: number, problem: string, index?: readonly number[]) {
    super(`${problem} (byte ${offset}). ${jsonError.codes[code].advice}`);
    this.code = code;
    this.offset = offset;
    this.index = index;
  }
}

/** The stable name of a fault in a schema. */
type SchemaErrorCode = keyof typeof schemaError.codes;

/** The facts behind a {@link SchemaError}, where they apply. */
interface SchemaErrorFacts {
  /** Where in the schema, as a JSON pointer. */
  readonly path?: string;
  /** The limit that was passed. */
  readonly limit?: number;
  readonly cause?: unknown;
}

/** A schema that cannot be used. About the schema itself: a value that does not fit one is not an error but an issue. */
export class SchemaError extends BrandedError {
  protected static override readonly brand = "SchemaError";

  override readonly name = "SchemaError";
  readonly code: SchemaErrorCode;
  readonly path: string | undefined;
  readonly limit: number | undefined;

  constructor(code: SchemaErrorCode, message: string, facts: SchemaErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.path = facts.path;
    this.limit = facts.limit;
  }
}

/** State that cannot be sealed, or a seal that would not be safe. A token that does not open is not an error. */
export class SealError extends BrandedError {
  protected static override readonly brand = "SealError";

  override readonly name = "SealError";
  readonly code: keyof typeof sealError.codes;

  constructor(code: SealError["code"], message: string) {
    super(message);
    this.code = code;
  }
}

/** The stable name of a fault in a skill. */
type SkillErrorCode = keyof typeof skillError.codes;

/** A skill that cannot be served, or must not be used. */
export class SkillError extends BrandedError {
  protected static override readonly brand = "SkillError";

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

/** A URI template that cannot be used, or that a value cannot be put into. */
export class UriTemplateError extends BrandedError {
  protected static override readonly brand = "UriTemplateError";

  override readonly name = "UriTemplateError";
  readonly code: keyof typeof uriTemplateError.codes;
  /** The template, cut short. */
  readonly template: string;

  constructor(code: UriTemplateError["code"], template: string, message: string, options?: ErrorOptions) {
    const shown = template.length > 100 ? `${template.slice(0, 99)}…` : template;
    super(`URI template ${JSON.stringify(shown)}: ${message}.`, options);
    this.code = code;
    this.template = shown;
  }
}
