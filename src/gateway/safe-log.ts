import { rewriteStrings } from "../json/rewrite-strings.ts";
import { rewriteTexts } from "../json/rewrite-texts.ts";
import type { GatewayLog, GatewayLogLevel } from "./log.ts";

/** A log without secrets: they are removed from messages and from all members of the logged objects. */
export function createSafeLog(log: GatewayLog, hide: (json: string) => string): GatewayLog {
  const isEnabled = (level: GatewayLogLevel): boolean => log.isLevelEnabled?.(level) ?? true;
  const safely =
    (level: GatewayLogLevel) =>
    (facts: object, text: string): void => {
      if (!isEnabled(level)) return;
      const [shownFacts, shownText] = hideEverywhere(JSON.stringify([facts, text]), hide) as [object, string];
      log[level](shownFacts, shownText);
    };
  return {
    debug: safely("debug"),
    info: safely("info"),
    warn: safely("warn"),
    error: safely("error"),
    isLevelEnabled: isEnabled,
  };
}

/** Stands for a secret. */
export const secretMark = "[secret]";

/** Takes secrets out of the strings of JSON text; of a secret of several lines, each line. */
export function createHide(secrets: () => readonly string[]): (json: string) => string {
  const hideIn = (value: string): string =>
    secrets()
      .flatMap((secret) => [secret, ...secret.split("\n")])
      .filter((part) => part.length >= minLength)
      .reduce((shown, part) => shown.replaceAll(part, secretMark), value);
  return (json) => rewriteStrings(json, hideIn);
}

/** Each secret once, the longest first: a secret may be the beginning of another, of which the rest would be shown. */
export function joinSecrets(one: readonly string[], other: readonly string[]): readonly string[] {
  return [...new Set([...one, ...other])].toSorted((a, b) => b.length - a.length);
}

/** Shorter texts would hide half of every line. */
const minLength = 6;

/** A JSON text without secrets in its strings, its keys and its numbers. For texts that are written to a file. */
export function hideEverywhere(json: string, hide: (json: string) => string): unknown {
  const hideAll = (texts: readonly string[]): string[] => JSON.parse(hide(JSON.stringify(texts))) as string[];
  return JSON.parse(rewriteTexts(json, hideAll));
}

/** The same data without secrets in its strings. */
export function hideInData<T>(data: T, hide: (json: string) => string): T {
  return data === undefined ? data : (JSON.parse(hide(JSON.stringify(data))) as T);
}

/**
 * Every value of `env` counts as a secret in the log, also a path or a word such as "issues". Such a value may well be part of
 * a name or a URI in a list, and must stay there.
 */
export function isStrongSecret(value: string): boolean {
  return value.length >= 8 && /\d/.test(value) && /[A-Za-z]/.test(value) && !/[/\\\s]/.test(value);
}
