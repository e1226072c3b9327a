/** One thing that is wrong, or odd, in a config. */
export interface ConfigIssue {
  /** Where: `mcpServers.github.comand`, `line 3, column 5`, or nothing for the file as a whole. */
  readonly path: string;
  /** What is wrong, and what to write instead. Never a value that came from the environment. */
  readonly message: string;
}

/** A config that cannot be used. It says everything that is wrong at once, a line for each. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly code = "config.invalid";
  readonly file: string;
  readonly issues: readonly ConfigIssue[];

  constructor(file: string, issues: readonly ConfigIssue[], options?: ErrorOptions) {
    const lines = issues.map(({ path, message }) => [file, path, message].filter(Boolean).join(": "));
    super(lines.join("\n"), options);
    this.file = file;
    this.issues = issues;
  }
}
