import type { ConfigIssue } from "../../errors/config-error.ts";
import { expand } from "./expand.ts";
import type { ConfigSource } from "./source.ts";

/** One pass over a config: what was found wrong on the way, and what must not be shown. */
export interface Reading {
  readonly source: ConfigSource;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly ConfigIssue[];
  issue(path: string, message: string): void;
  warn(path: string, message: string): void;
  /** The text with its variables filled in; undefined when one cannot be, which has been reported then. */
  expand(text: string, path: string): string | undefined;
  /** Notes a value that must never be shown. */
  hide(value: string): void;
  /** What must not be shown, longest first: a part of a secret that is replaced first leaves the rest readable. */
  secrets(): readonly string[];
}

const minSecretLength = 6;

export function createReading(source: ConfigSource): Reading {
  const issues: ConfigIssue[] = [];
  const warnings: ConfigIssue[] = [];
  const secrets = new Set<string>();
  const reported = new Set<string>();
  const hide = (value: string): void => {
    if (value.length >= minSecretLength) secrets.add(value);
  };
  return {
    source,
    issues,
    warnings,
    issue: (path, message) => void issues.push({ path, message }),
    warn: (path, message) => void warnings.push({ path, message }),
    expand: (text, path) => {
      const expansion = expand(text, source);
      expansion.values.forEach(hide);
      for (const { about, message } of expansion.faults) {
        const once = about ?? `${path}: ${message}`;
        if (reported.has(once)) continue;
        reported.add(once);
        issues.push({ path, message });
      }
      return expansion.faults.length === 0 ? expansion.text : undefined;
    },
    hide,
    secrets: () => [...secrets].toSorted((a, b) => b.length - a.length),
  };
}
