import { NotFoundError, RpcError, ToolError } from "@junctor/core/errors";
import { RawJson, rewriteStrings } from "@junctor/core/json";
import { keyOf, withMembers } from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import {
  type CallEvent,
  type ListedItem,
  thingOf,
  type CallEnd,
  type Middleware,
} from "@junctor/core/provider";
import { ExhaustedError, withinTime } from "@junctor/core/schema";

export type RedactOptions = ScrubberOptions;

/**
 * Replaces by `[redacted]` what matches in the strings and keys of a result (wherever they are: text, structured content,
 * resources, prompts, completions, failures), in questions to the user, in progress and log messages, and in lists: titles, descriptions,
 * defaults and examples. A tool or prompt whose name matches is left out and cannot be used; a resource whose URI matches is left out.
 * Numbers are left alone, and a result in which nothing matches is sent as the bytes that came.
 *
 * Your own patterns may search one result for `maxSearchMs` (100). After that the result is withheld and the call fails, because
 * a pattern that backtracks could hold up all callers. Each string is searched by itself, so a secret that a tool streams in
 * pieces, or splits between two blocks, is not found.
 *
 * @throws TypeError for an unknown kind of secret
 * @example
 * withMiddleware(provider, [redact({ patterns: ["email", "github-token", /ACME-[0-9]{8}/] })]);
 */
export function redact(options: RedactOptions): Middleware {
  const scrub = createScrubber(options);
  const mapEvent = (event: CallEvent): CallEvent | undefined => {
    try {
      return scrubEvent(event, scrub);
    } catch (error) {
      // What could not be searched is not sent.
      if (error instanceof ExhaustedError) return undefined;
      throw error;
    }
  };
  const shown = new WeakMap<object, ListedItem | undefined>();
  const tries = new WeakMap<object, number>();
  /** A listed item as callers see it; undefined for an item that is left out. */
  const show = (item: ListedItem): ListedItem | undefined => {
    if (shown.has(item)) return shown.get(item);
    try {
      const found = showItem(item, scrub);
      shown.set(item, found);
      return found;
    } catch (error) {
      if (!(error instanceof ExhaustedError)) throw error;
      // An item that could not be searched is left out. A busy machine may be the reason, so try it again a few times.
      const count = (tries.get(item) ?? 0) + 1;
      tries.set(item, count);
      if (count >= maxTries) shown.set(item, undefined);
      return undefined;
    }
  };
  const lists = new WeakMap<readonly ListedItem[], readonly ListedItem[]>();
  /** Names without secrets. */
  const harmless = new Set<string>();
  const isHarmless = (name: string): boolean => {
    try {
      return scrubValue(name, scrub) === name;
    } catch (cause) {
      if (!(cause instanceof ExhaustedError)) throw cause;
      throw new ToolError(`The call was refused: searching its name for secrets ${cause.message}.`, {
        cause,
      });
    }
  };
  return {
    isFilter: false,
    filterTools: (items) => {
      const known = lists.get(items);
      if (known !== undefined) return known;
      const left = Object.freeze(items.flatMap((item) => show(item) ?? []));
      // A list that may change, or was not searched to its end, is searched each time.
      if (Object.isFrozen(items) && items.every((item) => shown.has(item))) lists.set(items, left);
      return left;
    },
    beforeCall: (call) => {
      const { name, part } = call;
      const isName = part === undefined || part === "tools" || part === "prompts";
      if (isName && !harmless.has(name)) {
        if (!isHarmless(name)) throw new NotFoundError(thingOf(call), name);
        if (harmless.size >= maxHarmless) harmless.clear();
        harmless.add(name);
      }
      return { mapEvent };
    },
    afterCall: ({ name }, end) => {
      try {
        return scrubEnd(end, scrub);
      } catch (cause) {
        if (!(cause instanceof ExhaustedError)) throw cause;
        const message = `The answer of ${name} was withheld: searching it for secrets ${cause.message}.`;
        return { kind: "failed", error: new ToolError(message, { cause }) };
      }
    },
  };
}

/** How often a listed item whose search took too long is searched again. */
const maxTries = 3;

/** The most names that are remembered as harmless. */
const maxHarmless = 1000;

/** The members of a definition that people and models read, at any depth. Others have a meaning that must not change. */
const readable = new Set(["title", "description", "default", "examples", "$comment"]);

function showItem(item: ListedItem, scrub: Scrub): ListedItem | undefined {
  const key = keyOf(item);
  if (scrubValue(key, scrub) !== key) return undefined;
  // The name of a resource is read by people; that of a tool or prompt is the key.
  const name = scrubValue(item.name, scrub);
  const members = scrubReadable(item, scrub);
  return members === item && name === item.name ? item : withMembers(item, { ...members, name });
}

function scrubReadable<T extends object>(node: T, scrub: Scrub): T {
  const entries = Object.entries(node).map(([key, value]: [string, unknown]) => {
    if (readable.has(key) && !isSchema(value)) return [key, scrubValue(value, scrub)] as const;
    return [key, typeof value === "object" && value !== null ? scrubReadable(value, scrub) : value] as const;
  });
  if (entries.every(([key, value]) => value === (node as { readonly [key: string]: unknown })[key]))
    return node;
  return (Array.isArray(node) ? entries.map(([, value]) => value) : Object.fromEntries(entries)) as T;
}

/** Whether a readable member is a schema: an argument may be called `description`. */
function isSchema(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An end without secrets, also in the members of a task that we do not know. */
function scrubEnd(end: CallEnd, scrub: Scrub): CallEnd {
  const scrubbed = scrubOutcome(end, scrub);
  const { task } = end;
  if (task?.more === undefined) return scrubbed;
  const more = scrub(task.more.text);
  return more === task.more.text
    ? scrubbed
    : ({ ...scrubbed, task: { ...task, more: RawJson.fromText(more) } } as CallEnd);
}

function scrubOutcome(end: CallEnd, scrub: Scrub): CallEnd {
  switch (end.kind) {
    case "complete": {
      const { text, isForeign } = end.result;
      const scrubbed = scrub(text);
      return scrubbed === text ? end : { ...end, result: RawJson.fromText(scrubbed, isForeign) };
    }
    case "input_required":
      // The state is sealed, and only we read it.
      return { ...end, asks: scrubValue(end.asks, scrub) };
    case "working":
    case "cancelled":
      return end;
    case "failed":
      return { ...end, error: scrubError(end.error, scrub) as RpcError };
  }
}

function scrubEvent(event: CallEvent, scrub: Scrub): CallEvent {
  switch (event.kind) {
    case "progress":
      return event.message === undefined ? event : { ...event, message: scrubValue(event.message, scrub) };
    case "log":
      return { ...event, data: scrubValue(event.data, scrub) };
  }
}

/** An error without secrets. Other errors never reach the caller, so they are not searched. */
function scrubError(error: unknown, scrub: Scrub): unknown {
  if (error instanceof ToolError) {
    const message = scrubValue(error.message, scrub);
    return message === error.message
      ? error
      : new ToolError(message, { cause: error.cause, code: error.code });
  }
  if (error instanceof RpcError) {
    const { code, rpcCode, cause } = error;
    const message = scrubValue(error.message, scrub);
    const data = scrubValue(error.data, scrub);
    const isSame = message === error.message && data === error.data;
    return isSame ? error : new RpcError(code, message, { rpcCode, data, cause });
  }
  return error;
}

/** A value without secrets, as it will be on the wire; the same value if there is nothing to hide. */
function scrubValue<T>(value: T, scrub: Scrub): T {
  const text = JSON.stringify([value]);
  const scrubbed = scrub(text);
  return scrubbed === text ? value : (JSON.parse(scrubbed) as [T])[0];
}

interface ScrubberOptions {
  /** What to hide: kinds of secrets by their names, and patterns of your own. */
  readonly patterns: readonly (RegExp | SecretKind)[];
  /** How long patterns of your own may search one text; 100. */
  readonly maxSearchMs?: number;
}

/** Keys of the protocol. A pattern that matches one of them must not break the message. */
const protocolKeys = new Set(
  "content type text structuredContent isError _meta resultType data mimeType resource uri name title description annotations messages role contents blob completion values total hasMore".split(
    " ",
  ),
);

/** Hides secrets in the strings and keys of a JSON text. Returns the same text if there is nothing to hide. */
type Scrub = (json: string) => string;

const mask = "[redacted]";

/** @throws TypeError for an unknown kind of secret */
export function createScrubber({ patterns, maxSearchMs = 100 }: ScrubberOptions): Scrub {
  const searches = patterns.map(toSearch);
  // Our patterns take linear time; others run under a watchdog, which costs 60 µs.
  const limitMs = patterns.some((pattern) => typeof pattern !== "string") ? maxSearchMs : Infinity;
  return (json) => {
    // An escape can stand for any character, so a text with escapes cannot be searched for hints.
    const isPlain = !json.includes("\\u");
    const needed = isPlain ? searches.filter(({ hint }) => hint?.test(json) ?? true) : searches;
    if (needed.length === 0) return json;
    const hideIn = (value: string): string => needed.reduce((text, { hide }) => hide(text, mask), value);
    const hideInKey = (key: string): string => (protocolKeys.has(key) ? key : hideIn(key));
    return withinTime(limitMs, () => rewriteStrings(json, hideIn, hideInKey));
  };
}

interface Search {
  /** Undefined if each string must be searched. */
  readonly hint: RegExp | undefined;
  readonly hide: (text: string, mask: string) => string;
}

function toSearch(pattern: RegExp | SecretKind): Search {
  if (typeof pattern === "string") {
    if (Object.hasOwn(secrets, pattern)) return secrets[pattern];
    const known = Object.keys(secrets);
    const hint = suggest(pattern, known, `use a RegExp or one of ${known.join(", ")}`);
    throw new TypeError(`There is no kind of secret ${JSON.stringify(pattern)}: ${hint}`);
  }
  // A copy, global and not sticky: `lastIndex` of a pattern that is used elsewhere must not matter.
  const flags = `${pattern.flags.replaceAll(/[gy]/g, "")}g`;
  return { hint: undefined, hide: hideAll(new RegExp(pattern.source, flags)) };
}

/** Kinds of secrets that are recognised by their form. */
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
  /** Matches every text with such a secret, also where quotes and line breaks are escaped as in JSON. */
  readonly hint: RegExp;
  /** Replaces each secret in a text by `mask`. */
  readonly hide: (text: string, mask: string) => string;
}

const hideAwsId = hideAll(/(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])/g);
// Forty arbitrary characters: only the text before them shows what they are.
const hideAwsSecret = hideAll(
  /(?<=secret_?access_?key["'\s]{0,4}[:=]["'\s]{0,4})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
);

// The lookbehinds let a match begin only at the start of a run of characters. Otherwise every position in the run would be tried, and a
// megabyte of letters would take an hour.
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
    // The header may follow other characters without a break, such as `token_`.
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

/** Hides every match of a pattern, except empty ones. The pattern must be global. */
function hideAll(pattern: RegExp): Secret["hide"] {
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
    // The groups of a card are one character apart, and all but the last have four digits or more.
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
