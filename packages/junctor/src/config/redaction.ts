import { nearest } from "@junctor/core/options";
import { type SecretKind, secrets } from "@junctor/server/internal";
import { type ConfigValue, refuse } from "./config-value.ts";
import { readText } from "./value-readers.ts";

const example = '"/sk-[a-z0-9]+/i"';
const kinds = Object.keys(secrets);

/** The name of a kind of secret, or a regular expression written `/…/flags`. */
export function readRedaction(given: ConfigValue): string | undefined {
  const text = readText(given, example);
  if (text === undefined) return undefined;
  const problem = text.startsWith("/") ? findPatternProblem(text) : findNameProblem(text);
  return problem === undefined ? text : refuse(given, problem);
}

/** A redaction of a config as a pattern or a kind of secret. */
export function toRedaction(text: string): RegExp | SecretKind {
  const [, pattern, flags] = split(text) ?? [];
  return pattern === undefined ? (text as SecretKind) : new RegExp(pattern, flags);
}

function split(text: string): readonly string[] | null {
  return /^\/(.+)\/([dgimsuvy]*)$/s.exec(text);
}

function findNameProblem(text: string): string | undefined {
  if (kinds.includes(text)) return undefined;
  const near = nearest(text, kinds);
  const hint =
    near === undefined ? `write a regular expression such as ${example}` : `did you mean "${near}"?`;
  return `is none of ${kinds.join(", ")}: ${hint}`;
}

function findPatternProblem(text: string): string | undefined {
  if (split(text) === null)
    return `is not a regular expression between slashes: write one such as ${example}`;
  try {
    toRedaction(text);
    return undefined;
  } catch (error) {
    // The message begins with the expression, which may hold what a variable held; the reason is its end.
    const reason = (error as Error).message.split(": ").at(-1);
    return `is not a regular expression (${reason}): write one such as ${example}`;
  }
}
