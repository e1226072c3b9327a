/** A part of what the gateway offers, served at a path of its own. */
export interface ProfileConfig {
  readonly name: string;
  /** Globs on public names, within what a caller may use anyway; none means all of that. */
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  /** For the model, in place of what the servers say. */
  readonly instructions: string | undefined;
  /** New names of tools, by public names. */
  readonly rename: { readonly [name: string]: string };
  /** Names of tools, as the profile has them, that are always listed. */
  readonly pin: readonly string[];
  /** How tools are shown: all of them (the default), by a search, or whichever fits. */
  readonly tools: "all" | "search" | "auto";
  /** Tokens of definitions up to which `auto` shows all; 10,000. */
  readonly budget: number;
  /** About how many tokens a result may be, of all tools or by glob on public names, the first that fits. Undefined: any number. */
  readonly maxResultTokens: number | { readonly [glob: string]: number } | undefined;
}
