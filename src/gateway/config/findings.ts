import type { ConfigIssue } from "../../errors/config-error.ts";
import { type ConfigSource, expand, type Fault } from "./expand.ts";

/** One pass over a config: what was found wrong on the way, and what must not be shown. */
export interface Findings {
  readonly source: ConfigSource;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly ConfigIssue[];
  issue(path: string, message: string): void;
  warn(path: string, message: string): void;
  /** The text with its variables filled in; undefined when one cannot be, which has been reported then. */
  expand(text: string, path: string): string | undefined;
  /** The same findings, but variables without a value are no issue: `onUnset` is called for each, once. */
  withUnset(onUnset: (fault: Unset) => void): Findings;
  /** Notes a value that must never be shown. */
  hide(value: string): void;
  /** Values that must not be shown, longest first: if a part of a secret were replaced first, the rest would stay readable. */
  secrets(): readonly string[];
}

/** A variable without a value. */
export type Unset = Exclude<Fault, { readonly kind: "malformed" }>;

const minSecretLength = 6;

export function createFindings(source: ConfigSource): Findings {
  const issues: ConfigIssue[] = [];
  const warnings: ConfigIssue[] = [];
  const secrets = new Set<string>();
  const hide = (value: string): void => {
    if (value.length >= minSecretLength) secrets.add(value);
  };
  const expandWith =
    (onUnset: (fault: Unset, path: string) => void): Findings["expand"] =>
    (text, path) => {
      const { text: filled, values, faults } = expand(text, source);
      values.forEach(hide);
      for (const fault of faults) {
        if (fault.kind !== "malformed") onUnset(fault, path);
        // A text may have the same mistake twice.
        else if (!issues.some((issue) => issue.path === path && issue.message === fault.message))
          issues.push({ path, message: fault.message });
      }
      return faults.length === 0 ? filled : undefined;
    };
  const findings: Findings = {
    source,
    issues,
    warnings,
    issue: (path, message) => void issues.push({ path, message }),
    warn: (path, message) => void warnings.push({ path, message }),
    expand: expandWith(once(({ message }, path) => void issues.push({ path, message }))),
    withUnset: (onUnset) => ({ ...findings, expand: expandWith(once(onUnset)) }),
    hide,
    secrets: () => [...secrets].toSorted((a, b) => b.length - a.length),
  };
  return findings;
}

/** A variable is reported once, however often it is used. */
function once(tell: (fault: Unset, path: string) => void): (fault: Unset, path: string) => void {
  const reported = new Set<string>();
  return (fault, path) => {
    if (reported.has(fault.name)) return;
    reported.add(fault.name);
    tell(fault, path);
  };
}
