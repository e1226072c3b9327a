/** Kinds of secrets that are known by their form. */
export type SecretKind =
  | "email"
  | "credit-card"
  | "aws-key"
  | "github-token"
  | "jwt"
  | "private-key"
  | "bearer"
  | "openai-key";

/** How secrets of one kind are found. Every pattern takes time in proportion to the text, also to a hostile one. */
interface Secret {
  /** In every text that has such a secret this matches too, also where quotes and line breaks are escaped as in JSON. */
  readonly hint: RegExp;
  /** Replaces each secret in a text by `mask`. */
  readonly hide: (text: string, mask: string) => string;
}

const hideAwsId = hideAll(/(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])/g);
// Forty characters of any kind; only what stands before them tells what they are.
const hideAwsSecret = hideAll(
  /(?<=secret_?access_?key["'\s]{0,4}[:=]["'\s]{0,4})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
);

// A run of characters is entered at its beginning only (the lookbehind), or else each of its places would be tried as a
// beginning, and a megabyte of letters take an hour.
export const secrets: Readonly<Record<SecretKind, Secret>> = {
  email: {
    hint: /@/,
    hide: hideAll(
      /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}._%+-]+@(?:[\p{L}\p{N}-]{1,63}\.){1,20}[\p{L}\p{N}-]{2,63}/gu,
    ),
  },
  "credit-card": {
    hint: /[0-9][0-9 -]{12}/,
    hide: (text, mask) => text.replace(/[0-9][0-9 -]{12,}/g, (run) => hideCards(run, mask)),
  },
  "aws-key": {
    hint: /A[A-Z]{2}A[A-Z2-7]{16}|secret_?access_?key/i,
    hide: (text, mask) => hideAwsSecret(hideAwsId(text, mask), mask),
  },
  "github-token": {
    hint: /gh[pousr]_|github_pat_/,
    hide: hideAll(/gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}/g),
  },
  jwt: {
    hint: /eyJ/,
    // The header may have something before it in its run, such as `token_`.
    hide: (text, mask) =>
      text.replace(/(?<![\w-])[\w-]{10,}(?:\.[\w-]*){2,4}/g, (run) => {
        const start = run.indexOf("eyJ");
        return start === -1 || start > run.indexOf(".") ? run : run.slice(0, start) + mask;
      }),
  },
  "private-key": {
    hint: /PRIVATE KEY/,
    // A key that is cut off has no end, and reaches to the end of the text.
    hide: hideAll(
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    ),
  },
  bearer: {
    hint: /bearer/i,
    hide: hideAll(/\bbearer\s{1,8}[A-Za-z0-9._~+/=-]{16,}/gi),
  },
  "openai-key": {
    hint: /sk-/,
    hide: hideAll(/(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}/g),
  },
};

/** Hides whatever a pattern matches; matches of nothing are left alone. The pattern must be global. */
export function hideAll(pattern: RegExp): Secret["hide"] {
  return (text, mask) => text.replace(pattern, (match) => (match === "" ? "" : mask));
}

interface Group {
  readonly start: number;
  readonly end: number;
}

/** Hides the card numbers in a run of digits, spaces and dashes. A number begins and ends with a group of digits. */
function hideCards(run: string, mask: string): string {
  const groups: Group[] = Array.from(run.matchAll(/[0-9]+/g), ({ 0: digits, index }) => ({
    start: index,
    end: index + digits.length,
  }));
  let hidden = "";
  let copied = 0;
  for (let first = 0; first < groups.length; first++) {
    const last = lastOfCard(run, groups, first);
    if (last === undefined) continue;
    hidden += run.slice(copied, groups[first]?.start) + mask;
    copied = groups[last]?.end ?? run.length;
    first = last;
  }
  return hidden + run.slice(copied);
}

/** The group with which the longest card number that begins at a group ends. */
function lastOfCard(run: string, groups: readonly Group[], first: number): number | undefined {
  let digits = "";
  let found: number | undefined;
  let previous: Group | undefined;
  for (let at = first; at < groups.length; at++) {
    const group = groups[at] as Group;
    // Numbers in a row are not a card: its groups are apart by one character, and have four digits but for the last.
    if (previous !== undefined && (group.start !== previous.end + 1 || previous.end - previous.start < 4))
      break;
    if (digits.length + group.end - group.start > 19) break;
    digits += run.slice(group.start, group.end);
    if (digits.length >= 13 && isCardNumber(digits)) found = at;
    previous = group;
  }
  return found;
}

/** Cards begin with 2 to 6, which times in milliseconds do not, and the sum of their digits is right (Luhn). */
function isCardNumber(digits: string): boolean {
  if (!/^[2-6]/.test(digits)) return false;
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const weighted = i % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}
