import type { ConfigIssue } from "@junctor/core/errors";
import { type ConfigSource, expand, type Fault } from "./expand.ts";
import { type Candidate, minSecretLength, secrecyOf } from "./secret-value.ts";

/** One pass over a config: what was found wrong on the way, and what must not be shown. */
export interface Findings {
  readonly source: ConfigSource;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly ConfigIssue[];
  /** Notes where a setting stands, as the parser of the text does; what is said of it later has its line and column. */
  locate(path: string, at: () => Place): void;
  /** Where a setting stands in the text, or else what it is in. */
  placeOf(path: string): Place | undefined;
  issue(path: string, message: string): void;
  warn(path: string, message: string): void;
  /** The text with its variables filled in; undefined when one cannot be, which has been reported then. */
  expand(text: string, path: string): string | undefined;
  /** The same findings, but variables without a value are no issue: `onUnset` is called for each, once. */
  withUnset(onUnset: (fault: Unset) => void): Findings;
  /** The same findings; what they note as a secret of ordinary words is one of this server alone. */
  ofServer(name: string): Findings;
  /** Notes a value that must never be shown. */
  hide(value: string): void;
  /** Notes a value that must not be shown if it is a secret. */
  hideSecret(candidate: Candidate): void;
  /** Values that must not be shown, longest first: if a part of a secret were replaced first, the rest would stay readable. */
  secrets(): readonly string[];
  /** The same for what is about one server. */
  ownSecrets(): { readonly [server: string]: readonly string[] };
}

/** A place in a text, counted from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A variable without a value. */
export type Unset = Exclude<Fault, { readonly kind: "malformed" }>;

export function createFindings(source: ConfigSource): Findings {
  const issues: ConfigIssue[] = [];
  const warnings: ConfigIssue[] = [];
  const places = new Map<string, () => Place>();
  const placeOf = (path: string): Place | undefined => {
    for (let part = path; part !== ""; part = part.replace(lastPart, "")) {
      const place = places.get(part);
      if (place !== undefined) return place();
      if (!lastPart.test(part)) return undefined;
    }
    return undefined;
  };
  const toIssue = (path: string, message: string): ConfigIssue => {
    const at = placeOf(path);
    return { path, message, ...(at && { at }) };
  };
  const secrets = new Set<string>();
  const ownSecrets = new Map<string, Set<string>>();
  const hide = (value: string): void => {
    if (value.length >= minSecretLength) secrets.add(value);
  };
  const hideAt =
    (server: string | undefined): Findings["hideSecret"] =>
    (candidate) => {
      const { value } = candidate;
      const secrecy = secrecyOf(candidate);
      if (secrecy === undefined) return;
      if (secrecy === "everywhere" || server === undefined) hide(value);
      else ownSecrets.set(server, (ownSecrets.get(server) ?? new Set()).add(value));
      if (URL.canParse(value)) hide(decodeURIComponent(new URL(value).password));
    };
  const expandWith =
    (onUnset: (fault: Unset, path: string) => void, server?: string): Findings["expand"] =>
    (text, path) => {
      const found = expand(text, source);
      const { text: filled, faults } = found;
      found.secrets.forEach(hide);
      for (const { name, value } of found.values) hideAt(server)({ value, names: [name], isLikely: true });
      for (const fault of faults) {
        if (fault.kind !== "malformed") onUnset(fault, path);
        // A text may have the same mistake twice.
        else if (!issues.some((issue) => issue.path === path && issue.message === fault.message))
          issues.push(toIssue(path, fault.message));
      }
      return faults.length === 0 ? filled : undefined;
    };
  const issueUnset = once(({ message }, path) => void issues.push(toIssue(path, message)));
  const create = (onUnset: (fault: Unset, path: string) => void, server?: string): Findings => ({
    source,
    issues,
    warnings,
    locate: (path, at) => void places.set(path, at),
    placeOf,
    issue: (path, message) => void issues.push(toIssue(path, message)),
    warn: (path, message) => void warnings.push(toIssue(path, message)),
    expand: expandWith(onUnset, server),
    withUnset: (tell) => create(once(tell), server),
    ofServer: (name) => create(onUnset, name),
    hide,
    hideSecret: hideAt(server),
    secrets: () => byLength(secrets),
    ownSecrets: () => Object.fromEntries([...ownSecrets].map(([name, values]) => [name, byLength(values)])),
  });
  return create(issueUnset);
}

/** `.name`, `["a name"]` or `[0]` at the end of a path. */
const lastPart = /(?:(?:^|\.)[\w$@-]+|\[(?:\d+|"(?:[^"\\]|\\.)*")\])$/;

function byLength(values: ReadonlySet<string>): readonly string[] {
  return [...values].toSorted((a, b) => b.length - a.length);
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
