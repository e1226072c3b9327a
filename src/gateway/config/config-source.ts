/** Where a config comes from, and what its variables and relative paths mean. */
export interface ConfigSource {
  /** For messages; `config` when it came from code. */
  readonly file: string;
  readonly env: { readonly [name: string]: string | undefined };
  /** What relative paths are resolved against, and `${workspaceFolder}` stands for. */
  readonly folder?: string;
  /** Reads the text of an `envFile`. Without it, an `envFile` is an issue. */
  readonly readText?: (file: string) => string;
}
