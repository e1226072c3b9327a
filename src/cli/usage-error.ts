/** The person at the terminal wrote something we cannot do; one line, exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly code = "cli.usage";
}
