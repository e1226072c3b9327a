import { BrandedError } from "@junctor/core/errors";
/** A file of a client that is left as it is, because it cannot be read or edited safely. */
export class SpliceError extends BrandedError {
  protected static override readonly brand = "SpliceError";

  override readonly name = "SpliceError";
  readonly code = "cli.splice";
  readonly file: string;

  constructor(file: string, text: string) {
    super(`${file} is left as it is: ${text}`);
    this.file = file;
  }
}

/** What an edit made; undefined when it cannot be parsed. The person's file is right then, and the edit is not. */
export function parseOrNone<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SpliceError) return undefined;
    throw error;
  }
}
