import { type SecretKind, secrets } from "@junctor/server/internal";

/**
 * Where a value must not be shown. `everywhere` is for values that no text has by chance. `own` is for a secret that reads like
 * ordinary words, such as the password "postgres": hidden everywhere, it would be missing from the logs of all other servers.
 */
export type Secrecy = "everywhere" | "own";

/** A value of a config that may be a secret. */
export interface Candidate {
  readonly value: string;
  /** What the value is called: a variable, a header, an option. */
  readonly names: readonly string[];
  /** Whether it stands where secrets usually are: it came from the environment, or is sent in a header or a query. */
  readonly isLikely: boolean;
}

/** Shorter texts would hide half of every line. */
export const minSecretLength = 6;

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

/** Words of letters, small numbers, and short mixes such as `v2`. Of a text with spaces, nobody can tell by its form. */
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
