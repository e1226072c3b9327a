/** A port is taken, or only for those with more rights. */
export class PortError extends Error {
  override readonly name = "PortError";
  readonly code = "cli.port";

  /** `flag` is the one that chooses another. */
  constructor(flag: string, cause: Error) {
    super(`${cause.message}; choose another port with --${flag} PORT`, { cause });
  }
}
