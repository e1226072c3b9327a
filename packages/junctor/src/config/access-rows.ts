import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { isLoopback } from "@junctor/core/channel";
import { defined } from "@junctor/core/options";
import { readResultName, searchToolNames } from "../context/index.ts";
import { usualAlgorithms } from "../tokens/index.ts";
import {
  allowed,
  as,
  asked,
  atOnce,
  byName,
  choice,
  converted,
  either,
  fitting,
  isText,
  list,
  named,
  narrowAllow,
  narrowDeny,
  narrowRows,
  number,
  object,
  type Of,
  row,
  secret,
  text,
  texts,
  type Type,
} from "./rows.ts";
import { caps } from "./server-rows.ts";
import {
  type ConfigObject,
  type ConfigValue,
  joinPath,
  type KeyHints,
  readList,
  readTexts,
  refuse,
  warn,
} from "./value-readers.ts";

// Who may use what: keys and issuers that identify callers, and the rules and profiles that apply to them.

export const keyExample = '{ "env": "NAME_OF_A_VARIABLE" }';
const minLength = 16;
const advice = `a key has at least ${minLength} characters, such as "openssl rand -hex 32" prints`;

// A file is copied, shown and committed; a key in it would not stay secret.
const inFile = `a key is not written into a file: write ${keyExample}, or its "sha256"`;
const keyHints: KeyHints = { key: inFile, value: inFile, token: inFile, secret: inFile, apiKey: inFile };

/** Names of scopes as RFC 6749 has them: without spaces, quotes and backslashes. */
function scopeNames(written: string): Type<readonly string[]> {
  return list(scopeName(written), written);
}

function scopeName(written: string): Type<string> {
  const problem = `is not a name of a scope: write ${written}, without spaces and quotes`;
  return fitting(written, /^[!#-[\]-~]+$/, problem);
}

/** The profiles a key or a rule is bound to. An empty list is refused: some would read it as no profile, others as all. */
const bound: Type<readonly string[]> = as(
  (given) => {
    if (Array.isArray(given.value) && given.value.length === 0)
      return refuse(given, "is empty: leave it out for all profiles, or name some");
    return readTexts(given, '"profiles": ["review"]');
  },
  { ...texts("").schema, minItems: 1 },
);

/** The hash of the key that a variable holds. */
const keyOfVariable: Type<string> = as(hashVariable, {
  type: ["string", "null"],
  pattern: "^[A-Za-z_]\\w*$",
});

const hashOfKey: Type<string> = converted(
  fitting(
    '"sha256": "64 hex digits"',
    /^[0-9a-fA-F]{64}$/,
    'is not 64 hex digits: write what "printf %s KEY | sha256sum" prints',
  ),
  (hash) => hash.toLowerCase(),
);

/** A key by the variable that holds it, or by its hash. */
export const proofRows = {
  env: row({
    type: keyOfVariable,
    ...asked,
    doc: "the variable that holds the key: at least 16 characters, printable ASCII, such as `openssl rand -hex 32` prints",
  }),
  sha256: row({
    type: hashOfKey,
    ...asked,
    doc: "or its hash in hex, as `printf %s KEY \\| sha256sum` prints it. One of the two",
  }),
};

/** The hash from a variable, or as it is written; undefined when it is wrong, which has been reported. */
export function toHash(
  { env, sha256 }: Of<typeof proofRows>,
  given: ConfigObject,
  isAllKnown: boolean,
): string | undefined {
  // A key that is missing because it is misspelt has been reported.
  if (!given.has("env") && !given.has("sha256") && isAllKnown)
    return refuse(given, `has neither env nor sha256: write ${keyExample}`);
  return env ?? sha256;
}

/** Hashes the key that a variable holds. */
function hashVariable(given: ConfigValue): string | undefined {
  const { value: name, findings } = given;
  if (typeof name !== "string" || !/^[A-Za-z_]\w*$/.test(name))
    return refuse(given, `is not the name of a variable: write ${keyExample}, with nothing around the name`);
  const { env } = findings.source;
  const key = Object.hasOwn(env, name) ? env[name] : undefined;
  if (key === undefined || key === "") return refuse(given, `${name} is not set: set it; ${advice}`);
  findings.hide(key);
  // No client could present what a header cannot carry.
  const why =
    key.length < minLength
      ? "is too short"
      : /^[!-~]+$/.test(key)
        ? undefined
        : "has spaces or other characters than ASCII in it";
  if (why === undefined) return createHash("sha256").update(key).digest("hex");
  return refuse(given, `the value of ${name} ${why}: ${advice}`);
}

/** A shorter list of profiles may be used at once. */
function narrowBound(
  next: readonly string[] | undefined,
  agreed: readonly string[] | undefined,
): readonly string[] | undefined {
  if (agreed === undefined) return next;
  const kept = (next ?? []).filter((name) => agreed.includes(name));
  return kept.length === 0 ? agreed : kept;
}

const allowRow = row({
  type: allowed('"allow": ["github__*"]'),
  usual: [],
  consent: narrowAllow,
  effect: "live",
  byDefault: "all",
  doc: "globs on what may be used, within what all callers may",
});

const denyRow = row({
  type: texts('"deny": ["github__delete_*"]'),
  usual: [],
  consent: narrowDeny,
  effect: "live",
  byDefault: "none",
  doc: "globs on what may not be used. `deny` wins",
});

/** Globs on what callers may use, of a key, a profile, or for all. */
export const globRows = { allow: allowRow, deny: denyRow };

export const keyRows = {
  ...proofRows,
  allow: allowRow,
  deny: denyRow,
  groups: row({
    type: texts('"groups": ["eng"]'),
    ...asked,
    byDefault: "`[]`",
    doc: "what [rules](../guides/who-may-do-what.md) know of this caller",
  }),
  scopes: row({
    type: scopeNames('"scopes": ["mcp:write"]'),
    ...asked,
    byDefault: "`[]`",
    doc: "the same, as scopes",
  }),
  profiles: row({
    type: bound,
    consent: narrowBound,
    effect: "live",
    byDefault: "all, and `/mcp`",
    doc: "the profiles it may use. A key with this is good at `/mcp/NAME` of these profiles only; `/mcp` answers 403 and says so",
  }),
};

/** A key that a client of the gateway may present. */
export interface KeyConfig extends Omit<Of<typeof keyRows>, "env" | "sha256"> {
  readonly name: string;
  /** Of the key, in lower-case hex. The key itself is not kept. */
  readonly sha256: string;
}

export const keys: Type<readonly KeyConfig[]> = named(
  object(keyRows, {
    example: keyExample,
    rivals: ["env", "sha256"],
    hints: keyHints,
    check: ({ env, sha256, ...rest }, given, isAllKnown) => {
      const hash = toHash(defined({ env, sha256 }), given, isAllKnown);
      return hash === undefined ? undefined : { sha256: hash, ...rest };
    },
  }),
  {
    example: `"keys": { "alice": ${keyExample} }`,
    check: (found, given) =>
      refuseTwins(
        found,
        given,
        ({ sha256 }) => sha256,
        (owner) => `is the same key as ${owner}: give each its own`,
      ),
  },
);

/** Refuses an item that has something in common with an earlier one. */
function refuseTwins<T extends { readonly name: string }>(
  found: readonly T[],
  given: ConfigValue,
  partOf: (item: T) => string,
  describe: (owner: string) => string,
): void {
  const owners = new Map<string, string>();
  for (const item of found) {
    const owner = owners.get(partOf(item));
    if (owner !== undefined) given.findings.issue(joinPath(given.path, item.name), describe(owner));
    owners.set(partOf(item), item.name);
  }
}

/** Keys may be removed at once. A new key would let callers in, and so would removing all keys. */
export function narrowKeys(next: readonly KeyConfig[], agreed: readonly KeyConfig[]): readonly KeyConfig[] {
  if (agreed.length === 0) return next;
  const kept = next.flatMap((key) => {
    const before = agreed.find(({ name, sha256 }) => name === key.name && sha256 === key.sha256);
    return before === undefined ? [] : [narrowRows(keyRows, key, before).value];
  });
  return kept.length === 0 ? agreed : kept;
}

const issuerExample = '"https://id.example.com/realms/corp"';
const askExample = '{ "clientId": "gateway", "clientSecret": "${SECRET}" }';

function issuerUrl(written: string): Type<string> {
  return converted(text(written), (value, given) => {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    const isLocal = url?.protocol === "http:" && isLoopback(url.hostname.replaceAll(/[[\]]/g, ""));
    if (
      url === undefined ||
      url.username !== "" ||
      url.password !== "" ||
      url.search !== "" ||
      url.hash !== ""
    )
      return refuse(given, `is not the URL of an issuer: write ${written}`);
    return url.protocol === "https:" || isLocal
      ? value
      : refuse(given, `must begin with https: write ${written}`);
  });
}

const clientId = row({
  type: text('"gateway"'),
  isRequired: true,
  ...asked,
  doc: "a client that the issuer knows",
});
const clientSecret = { type: secret('"${SECRET}"'), ...asked, doc: "its secret" } as const;

export const loginRows = { clientId, clientSecret: row(clientSecret) };

export const introspectionRows = {
  clientId,
  clientSecret: row({ ...clientSecret, isRequired: true }),
  url: row({
    type: issuerUrl('"https://id.example.com/introspect"'),
    ...asked,
    byDefault: "from its metadata",
    doc: "where tokens are looked up",
  }),
};

const audience: Type<string | readonly string[]> = either(
  Array.isArray,
  converted(texts('"audience": ["api://mcp"]'), (names, given) =>
    names.length === 0 ? refuse(given, 'is empty: leave it out, or write "api://mcp"') : names,
  ),
  text('"api://mcp"'),
);

const algorithms: Type<readonly string[]> = converted(
  list(choice(...usualAlgorithms), '"algorithms": ["RS256"]'),
  (names, given) =>
    names.length === 0 ? refuse(given, 'is empty: leave it out, or write ["RS256"]') : names,
);

export const issuerRows = {
  issuer: row({
    // Kept exactly as it is written: tokens name their issuer, and every character counts.
    type: converted(issuerUrl(issuerExample), (value, given) =>
      new URL(value).hostname === "accounts.google.com"
        ? refuse(
            given,
            "gives access tokens that only Google can read: put a broker such as Keycloak, Auth0 or Dex before it, and name that",
          )
        : value,
    ),
    isRequired: true,
    ...asked,
    byDefault: "must be given",
    doc: "its URL, exactly as its tokens spell it in `iss`; a slash at the end counts",
  }),
  audience: row({
    type: audience,
    ...asked,
    byDefault: "`http.publicUrl`",
    doc: "a text or a list; `aud` of a token must name one of them",
  }),
  scopes: row({
    type: scopeNames('"scopes": ["mcp:use"]'),
    consent: (next, agreed) => ((agreed ?? []).every((scope) => next?.includes(scope)) ? next : agreed),
    effect: "live",
    byDefault: "`[]`",
    doc: "scopes that every token must have; they are asked for in challenges",
  }),
  algorithms: row({
    type: algorithms,
    ...asked,
    byDefault: "all asymmetric ones",
    doc: 'algorithms of signatures: `["RS256"]`',
  }),
  groupsClaim: row({
    type: text('"realm_access.roles"'),
    ...asked,
    byDefault: '`"groups"`',
    doc: 'the claim with the groups of a caller, with dots between nested names: `"realm_access.roles"`',
  }),
  implies: row({
    type: byName(scopeNames('["mcp:write"]'), '"implies": { "mcp:admin": ["mcp:write"] }'),
    ...asked,
    byDefault: "`{}`",
    doc: 'scopes that a scope includes: `{ "mcp:admin": ["mcp:write"] }`',
  }),
  jwksUri: row({
    type: issuerUrl('"https://id.example.com/keys"'),
    ...asked,
    byDefault: "from its metadata",
    doc: "where its keys are",
  }),
  introspection: row({
    type: object(introspectionRows, {
      example: `"introspection": ${askExample}`,
      missing: `needs clientId and clientSecret: write ${askExample}`,
    }),
    ...asked,
    byDefault: "none",
    doc: '`{ "clientId", "clientSecret", "url" }`: tokens that are not JWTs are looked up there (RFC 7662); `url` comes from the metadata when left out',
  }),
  login: row({
    type: object(loginRows, {
      example: `"login": ${askExample}`,
      missing: `needs a clientId: write ${askExample}`,
    }),
    ...asked,
    byDefault: "the gateway makes itself known",
    doc: '`{ "clientId", "clientSecret" }`: a client of the issuer that asks who visits a [connect page](#accounts-of-callers), with the callback `ORIGIN/oauth/identity/NAME`',
  }),
};

/** An issuer of access tokens that callers may present. */
export interface IssuerConfig extends Of<typeof issuerRows> {
  readonly name: string;
}

export const issuers: Type<readonly IssuerConfig[]> = named(
  object(issuerRows, {
    example: `{ "issuer": ${issuerExample} }`,
    missing: `has no issuer: write { "issuer": ${issuerExample} }`,
  }),
  {
    example: `"issuers": { "corp": { "issuer": ${issuerExample} } }`,
    name: {
      pattern: /^[\w-]{1,32}$/,
      problem: "cannot be a name: write up to 32 letters, digits, - and _, such as corp",
    },
    check: (found, given) => {
      if (found.some(({ name }) => name === "cert"))
        given.findings.issue(
          joinPath(given.path, "cert"),
          "is what names of callers with certificates begin with: choose another",
        );
      refuseTwins(
        found,
        given,
        ({ issuer }) => issuer,
        (owner) => `is the same issuer as ${owner}: keep one of them`,
      );
    },
  },
);

/** Issuers may be removed, or want more scopes, at once. A new issuer would let callers in, and so would removing all issuers. */
export function narrowIssuers(
  next: readonly IssuerConfig[],
  agreed: readonly IssuerConfig[],
): readonly IssuerConfig[] {
  const kept = next.filter(({ scopes = [], ...issuer }) =>
    agreed.some(
      ({ scopes: wanted = [], ...known }) =>
        isDeepStrictEqual(issuer, known) && wanted.every((scope) => scopes.includes(scope)),
    ),
  );
  return kept.length === 0 ? agreed : kept;
}

const ruleExample = `{ "allow": ["github__*"], "when": "'eng' in caller.groups" }`;
const kinds = ["allow", "deny", "scope", "ask"] as const;
const maxRules = 200;

const scopeExample = '"scope": "mcp:write"';

export const ruleRows = {
  allow: row({
    type: allowed('"allow": ["github__*"]'),
    ...asked,
    doc: "globs on what callers may use where the rule applies",
  }),
  deny: row({
    type: texts('"deny": ["*__delete_*"]'),
    ...atOnce,
    doc: "globs on what callers may not use where the rule applies",
  }),
  scope: row({
    type: either(
      isText,
      converted(scopeName(scopeExample), (scope) => [scope]),
      scopeNames(scopeExample),
    ),
    ...atOnce,
    doc: "the scopes that a token needs for what `tools` names",
  }),
  tools: row({
    type: texts('"tools": ["*__create_*"]'),
    ...asked,
    doc: "of `scope`: globs on what it is for",
  }),
  ask: row({
    type: texts('"ask": ["*__delete_*"]'),
    ...atOnce,
    doc: "globs on what a person must [agree to](../guides/a-person-says-yes.md), each call again",
  }),
  if: row({
    type: text('"arguments.sum > 100"'),
    ...asked,
    byDefault: "every call",
    doc: "of `ask`: a condition (CEL) over `caller` and `arguments`: calls for which it does not hold are not asked about",
  }),
  of: row({
    type: choice("caller", "operator", "both"),
    ...asked,
    byDefault: '`"caller"`',
    doc: "of `ask`: who must agree. `caller`: the person at the client of the caller; `operator`: the one who runs the gateway; `both`: one after the other",
  }),
  waitMs: row({
    type: number({ min: 1000, max: 3_600_000, example: 600_000 }),
    ...asked,
    byDefault: "600,000",
    doc: "of `ask`: how long a question waits; then the call is refused",
  }),
  goodMs: row({
    type: number({ min: 0, max: 3_600_000, example: 60_000 }),
    ...asked,
    byDefault: "0",
    doc: "of `ask`: how long a yes is good for calls with the same arguments; 0: for one call",
  }),
  when: row({
    type: text(`"'eng' in caller.groups"`),
    ...asked,
    doc: "a condition (CEL) over the caller: the rule applies only when it holds",
  }),
  unless: row({ type: text(`"'admin' in caller.groups"`), ...asked, doc: "the opposite" }),
  profiles: row({
    type: bound,
    ...asked,
    byDefault: "everywhere",
    doc: "the profiles at which it applies, and nowhere else",
  }),
};

/** A rule about who may use what. Its condition is compiled later. */
export interface AccessRule extends Pick<Of<typeof ruleRows>, "when" | "unless" | "profiles" | "if"> {
  readonly kind: "allow" | "deny" | "scope" | "ask";
  /** Globs on public names. */
  readonly names: readonly string[];
  /** Of a `scope` rule: the scopes that a token needs. */
  readonly scopes: readonly string[];
  /** Of an `ask` rule. */
  readonly approval?: {
    readonly of: "caller" | "operator" | "both";
    readonly waitMs: number;
    readonly goodMs: number;
  };
}

const rule: Type<AccessRule> = object(ruleRows, {
  example: ruleExample,
  check: ({ tools, ...settings }, given, isAllKnown): AccessRule | undefined => {
    const [kind, ...others] = kinds.filter((each) => given.has(each));
    if (kind === undefined || others.length > 0)
      return isAllKnown
        ? refuse(given, `must have one of allow, deny, scope and ask: write ${ruleExample}`)
        : undefined;
    const conditions = defined({ when: settings.when, unless: settings.unless, profiles: settings.profiles });
    for (const key of ["if", "of", "waitMs", "goodMs"])
      if (kind !== "ask" && given.has(key)) refuse(given.get(key), 'belongs to a rule with "ask": remove it');
    if (kind !== "scope") {
      if (given.has("tools"))
        refuse(given.get("tools"), `does not belong here: write the globs into "${kind}"`);
      if (kind === "ask") {
        const { ask: names = [], of = "caller", waitMs = 600_000, goodMs = 0 } = settings;
        const approval = { of, waitMs, goodMs };
        return { kind, names, scopes: [], approval, ...conditions, ...defined({ if: settings.if }) };
      }
      return { kind, names: settings[kind] ?? [], scopes: [], ...conditions };
    }
    if (tools === undefined || tools.length === 0)
      return refuse(
        given,
        'does not say what the scope is for: write "tools": ["*__create_*"], or ["*"] for all',
      );
    return { kind, names: tools, scopes: settings.scope ?? [], ...conditions };
  },
});

export const rules: Type<readonly AccessRule[]> = {
  read: (given) => {
    const { value } = given;
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value))
      return refuse(given, `must be an array of rules: write "rules": [${ruleExample}]`);
    if (value.length > maxRules) refuse(given, `has more than ${maxRules} rules: use globs to join some`);
    return readList(given, ruleExample, rule.read, "a rule");
  },
  schema: { type: ["array", "null"], items: rule.schema, maxItems: maxRules },
  each: ruleRows,
};

/** A rule that denies or wants a scope takes something away. So does the first `allow`; each further one gives something. */
export function narrowRules(
  next: readonly AccessRule[],
  agreed: readonly AccessRule[],
): readonly AccessRule[] {
  const isIn = (all: readonly AccessRule[]) => (one: AccessRule) =>
    all.some((each) => isDeepStrictEqual(each, one));
  const allowedBefore = agreed.filter(({ kind }) => kind === "allow");
  const kept = next.filter((one) => one.kind !== "allow" || allowedBefore.length === 0 || isIn(agreed)(one));
  const isOpened = allowedBefore.length > 0 && !kept.some(({ kind }) => kind === "allow");
  const missed = agreed.filter((one) => !isIn(next)(one) && (one.kind !== "allow" || isOpened));
  return [...kept, ...missed];
}

/** Claude Code shows a model no more than this of a server's instructions. */
const usualInstructions = 2048;

const instructions = converted(
  text('"Use the tools of github for everything about code."'),
  (value, given) => {
    if (value.length > usualInstructions)
      warn(
        given,
        `has ${value.length} characters: some clients show the model the first ${usualInstructions} only`,
      );
    return value;
  },
);

const ownNames: readonly string[] = [...Object.values(searchToolNames), readResultName];

/** New names of tools. No two tools may share a name, or take one of the gateway's own tools. */
const rename = converted(
  byName(
    fitting(
      '"new_issue"',
      /^[A-Za-z0-9_-]{1,64}$/,
      "cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -",
    ),
    '"rename": { "github__create_issue": "new_issue" }',
  ),
  (names: { readonly [old: string]: string }, given) => {
    const owners = new Map<string, string>();
    for (const [old, name] of Object.entries(names)) {
      const at = { ...given, path: joinPath(given.path, old) };
      const owner = owners.get(name);
      if (owner !== undefined) refuse(at, `is the new name of ${owner} too: write another`);
      if (ownNames.includes(name)) refuse(at, "is the name of a tool of the gateway's own: write another");
      owners.set(name, old);
    }
    return names;
  },
);

export const profileRows = {
  allow: row({
    ...allowRow,
    usual: [],
    doc: "globs on what this profile has, within what its caller may use",
  }),
  deny: row({ ...denyRow, usual: [], doc: "globs on what this profile does not have. `deny` wins" }),
  instructions: row({
    type: instructions,
    usual: undefined,
    // A text for models, in which variables are filled in.
    ...asked,
    byDefault: "those of its servers",
    doc: "text for the model. Some clients show it the first 2,048 characters only",
  }),
  group: row({
    type: text('"All about the code of a change."'),
    usual: undefined,
    ...asked,
    byDefault: "none",
    doc: 'with `"drafts": ["groups"]`: serves this profile as a [group](groups.md) with this description, at the path of all servers',
  }),
  rename: row({
    type: rename,
    usual: {},
    ...asked,
    doc: 'new names of tools by the names clients see: `{ "github__create_issue": "new_issue" }`. A tool is no longer known by its old name; a new name hides a tool that has it already. Rules, limits and the audit go by the old name',
  }),
  pin: row({
    type: texts('"pin": ["github__search_code"]'),
    usual: [],
    ...atOnce,
    doc: "names of tools, as the profile has them, that a search lists too. Claude Code loads them at once (`anthropic/alwaysLoad`)",
  }),
  tools: row({
    type: choice("all", "search", "auto"),
    usual: "all",
    ...atOnce,
    doc: '`"search"`: the list has `search_tools`, `describe_tools`, `call_tool` and pinned tools (and `call_read_tool` with `trustHints`), and the model finds the others. `"auto"`: all of them while they are below `budget`, and for clients that defer tools by themselves (Claude Code, Codex, VS Code); else a search',
  }),
  budget: row({
    type: number({ min: 0, max: 10_000_000, example: 10_000 }),
    usual: 10_000,
    ...atOnce,
    doc: 'tokens of definitions, about, up to which `"auto"` shows all',
  }),
  maxResultTokens: row({
    type: caps,
    usual: undefined,
    ...atOnce,
    byDefault: "none",
    doc: 'about how many tokens a result may be, at least 500: a number for all tools, or `{ "github__*": 4000 }` by glob, the first that fits. For tools that none fits, `maxResultTokens` of their server counts. [More](../guides/small-context.md#results-that-fit)',
  }),
};

/** A part of what the gateway offers, served at a path of its own. */
export interface ProfileConfig extends Of<typeof profileRows> {
  readonly name: string;
}

export const profiles: Type<readonly ProfileConfig[]> = named(
  object(profileRows, { example: '{ "allow": ["github__*"] }', orEmpty: true }),
  {
    example: '"profiles": { "review": { "allow": ["github__*"] } }',
    // It is part of a URL, and of a command line.
    name: {
      pattern: /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
      problem: "cannot be the name of a profile: write 1 to 64 of A-Z a-z 0-9 _ -, a letter or digit first",
    },
  },
);

/** A profile takes something away, so a new one may be used at once, except for its texts. */
export function narrowProfiles(
  next: readonly ProfileConfig[],
  agreed: readonly ProfileConfig[],
): readonly ProfileConfig[] {
  return next.map((profile) => {
    const before = agreed.find(({ name }) => name === profile.name);
    return narrowRows(
      profileRows,
      profile,
      before ?? { ...profile, instructions: undefined, group: undefined, rename: {} },
    ).value;
  });
}
