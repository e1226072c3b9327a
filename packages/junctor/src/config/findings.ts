import type { ConfigIssue } from "@junctor/core/errors";
import { type SecretKind, secrets } from "@junctor/server/internal";
import { type ConfigSource, expand, type Fault } from "./expand.ts";

/** One pass over a config: what was found wrong on the way, and what must not be shown. */
export interface Findings {
  readonly source: ConfigSource;
  readonly issues: readonly ConfigIssue[];
  readonly warnings: readonly ConfigIssue[];
  /** Notes where a setting stands, as the parser of the text does; later messages about it have its line and column. */
  locate(path: string, at: () => Place): void;
  /** Where a setting stands in the text, or else where what contains it stands. */
  placeOf(path: string): Place | undefined;
  issue(path: string, message: string): void;
  warn(path: string, message: string): void;
  /** The text with its variables filled in; undefined when one cannot be, which has been reported then. */
  expand(text: string, path: string): string | undefined;
  /** The same findings, but variables without a value are not issues: `onUnset` is called for each, once. */
  withUnset(onUnset: (fault: Unset) => void): Findings;
  /** The same findings; a secret that reads like ordinary words is hidden for this server alone. */
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

/**
 * Where a value must not be shown. `everywhere` is for values that appear in no text by chance. `own` is for a secret that reads like
 * ordinary words, such as the password "postgres": hidden everywhere, it would be missing from the logs of all other servers.
 */
type Secrecy = "everywhere" | "own";

/** A value of a config that may be a secret. */
interface Candidate {
  readonly value: string;
  /** What the value is called: a variable, a header, an option. */
  readonly names: readonly string[];
  /** Whether it stands where secrets usually are: it came from the environment, or is sent in a header or a query. */
  readonly isLikely: boolean;
}

/** Shorter texts would hide half of every line. */
const minSecretLength = 6;

/** Decides by names, by the place and by the form of a value; undefined for one that may be shown. */
export function secrecyOf({ value, names, isLikely }: Candidate): Secrecy | undefined {
  if (value.length < minSecretLength) return undefined;
  if (isKnownKind(value) || hasPassword(value)) return "everywhere";
  const isPlain = isOrdinary(value);
  if (names.some(isSecretName)) return isPlain ? "own" : "everywhere";
  if (isPlain) return undefined;
  return isLikely || isRandom(value) ? "everywhere" : undefined;
}

const secretWords = new Set(
  (
    "KEY KEYS APIKEY TOKEN SECRET SECRETS PASSWORD PASSWD PASSPHRASE PASS PWD PW PIN OTP PAT CREDENTIAL CREDENTIALS AUTH " +
    "AUTHORIZATION BEARER COOKIE SESSION SIGNATURE PRIVATE DSN WEBHOOK JWT SALT"
  ).split(" "),
);

/** At the end of a name: the value is about a secret, and is not one itself. */
const aboutWords = new Set(
  (
    "FILE PATH DIR FOLDER URL URI HOST PORT ENDPOINT DOMAIN NAME USER USERNAME ID TYPE KIND MODE METHOD PROVIDER ISSUER AUDIENCE " +
    "SCOPE SCOPES REGION VERSION TTL EXPIRY TIMEOUT LIMIT COUNT LENGTH SIZE ENABLED REQUIRED"
  ).split(" "),
);

/** `DB_PASSWORD`, `X-Api-Key`, `--apiKey` and the like. `PWD` alone is the working folder. */
function isSecretName(name: string): boolean {
  const words = name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter(Boolean);
  if (words.join() === "PWD" || aboutWords.has(words.at(-1) ?? "")) return false;
  return words.some((word) => secretWords.has(word));
}

const kinds: readonly SecretKind[] = ["aws-key", "github-token", "jwt", "private-key", "openai-key"];

function isKnownKind(value: string): boolean {
  return kinds.some((kind) => secrets[kind].hide(value, "") !== value);
}

/** Whether it is a URL with a password in it. */
function hasPassword(value: string): boolean {
  return URL.canParse(value) && new URL(value).password !== "";
}

const number = /^[\d.,:+-]{1,12}$/;
const host = /^(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)+[a-z]{2,24}(?::\d{1,5})?$/;
const address =
  /^(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?$|^\[?[\da-f]{0,4}(?::[\da-f]{0,4}){2,7}\]?(?::\d{1,5})?$/i;
const email = /^[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,24}$/i;
const path = /^(?:~|\.{1,2})?[/\\][^+=]*$|^[a-z]:[/\\][^+=]*$/i;

/** Hosts, addresses, ports, user names, paths, plain URLs and words. */
function isOrdinary(value: string): boolean {
  if ([number, host, address, email].some((form) => form.test(value))) return true;
  if (path.test(value)) return !value.split(/[/\\]/).some(isMixed);
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(value) && URL.canParse(value)) {
    const { password, pathname, searchParams } = new URL(value);
    const parts = [...pathname.split("/"), ...searchParams.values()];
    return password === "" && !parts.some(isRandom);
  }
  return isWords(value);
}

/** Words of letters, small numbers, and short mixes such as `v2`; no text with spaces, whose form tells nothing. */
function isWords(value: string): boolean {
  if (!/^[A-Za-z\d]+(?:[-_.:,@/][A-Za-z\d]+)*$/.test(value)) return false;
  return value
    .split(/[^A-Za-z\d]/)
    .every((word) => /^[A-Za-z]{1,15}$|^\d{1,6}$/.test(word) || word.length <= 5);
}

/** Whether no person would have chosen the value: a run of letters and digits, or a long mix of all kinds. */
function isRandom(value: string): boolean {
  if (/\s/.test(value) || isWords(value)) return false;
  const runs = value.match(/[A-Za-z\d]{12,}/g) ?? [];
  return runs.some((run) => /\d/.test(run) && /[A-Za-z]/.test(run)) || isMixed(value);
}

function isMixed(value: string): boolean {
  return value.length >= 20 && /\d/.test(value) && /[a-z]/.test(value) && /[A-Z]/.test(value);
}
