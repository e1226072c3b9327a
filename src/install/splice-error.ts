/** A file of a client that is left as it is, because it cannot be read or edited safely. */
export class SpliceError extends Error {
  override readonly name = "SpliceError";
  readonly code = "cli.splice";
  readonly file: string;

  constructor(file: string, text: string) {
    super(`${file} is left as it is: ${text}`);
    this.file = file;
  }
}
