import { defaultNaming, type Naming, prefixOf } from "@junctor/core/compose";
import { nearest } from "@junctor/core/options";
import { createGlob } from "@junctor/server/internal";
import { toPublicName, toToolName } from "../catalog/index.ts";
import {
  type ConfigIssue,
  type GatewayConfig,
  joinPath,
  type KeyConfig,
  type ServerConfig,
} from "../config/index.ts";
import type { GatewayLog } from "../log/index.ts";
import type { GatewayServer } from "../servers/index.ts";
import type { CallerRules } from "./rules.ts";

/** A server as far as rules are about it. */
type RuleSource = Pick<GatewayServer, "config" | "isSettled" | "listedFor">;

/**
 * Rules of a config that match nothing any server lists: most are misspelt, and a `deny` that is misspelt denies nothing.
 * A rule is judged once every server that it may be about is listed.
 */
export function findUnmatchedRules(
  config: Pick<GatewayConfig, "separator" | "allow" | "deny" | "keys" | "limits"> &
    Partial<Pick<GatewayConfig, "profiles" | "rules">>,
  sources: readonly RuleSource[],
): readonly ConfigIssue[] {
  const naming = { ...defaultNaming, separator: config.separator };
  const { allow, deny, keys, limits, profiles = [], rules = [] } = config;
  const general: readonly RuleList[] = [
    { path: "junctor.allow", globs: allow },
    { path: "junctor.deny", globs: deny, denies: true },
    ...keys.flatMap((key) => rulesAt(joinPath("junctor.keys", key.name), key)),
    ...profiles.flatMap((profile) => rulesAt(joinPath("junctor.profiles", profile.name), profile)),
    ...rules.map(({ kind, names }, index) => ({
      path: `junctor.rules[${index}]`,
      globs: names,
      denies: kind !== "allow",
    })),
    { path: "junctor.limits.tools", globs: Object.keys(limits.tools ?? {}) },
  ];
  return [
    ...sources.flatMap((source) => (source.isSettled ? unmatchedOf(source, naming) : [])),
    ...general.flatMap(({ path, globs, denies = false }) =>
      globs.flatMap((glob) => judge(glob, sources, naming, denies).map((message) => ({ path, message }))),
    ),
  ];
}

interface RuleList {
  readonly path: string;
  readonly globs: readonly string[];
  /** Such a rule matches own names as well. */
  readonly denies?: boolean;
}

function rulesAt(path: string, { allow, deny }: Pick<KeyConfig, "allow" | "deny">): readonly RuleList[] {
  return [
    { path: `${path}.allow`, globs: allow },
    { path: `${path}.deny`, globs: deny, denies: true },
  ];
}

/** The rules of one server, which are about its own names and those that callers see. */
function unmatchedOf(source: RuleSource, naming: Naming): readonly ConfigIssue[] {
  const { name, allow, deny, tools } = source.config;
  const own = source.listedFor().tools.map((tool) => tool.name);
  const both = [...own, ...own.map((ownName) => toToolName(source.config, ownName, naming))];
  const path = joinPath("junctor.servers", name);
  const hint = (rule: string): string => {
    // The rule may have the name that callers see, where the server's own was wanted.
    const seen = own.find((ownName) => toToolName(source.config, ownName, naming) === rule);
    return toHint(seen ?? suggest(rule, own));
  };
  const ofGlobs = (key: string, globs: readonly string[]): readonly ConfigIssue[] =>
    globs
      .filter((glob) => !fitsAny(glob, both))
      .map((glob) => ({
        path: `${path}.${key}`,
        message: `${JSON.stringify(glob)} matches none of its tools${hint(glob)}`,
      }));
  const ofTools = Object.keys(tools)
    .filter((ownName) => !own.includes(ownName))
    .map((ownName) => ({
      path: joinPath(`${path}.tools`, ownName),
      message: `names none of its tools${hint(ownName)}`,
    }));
  return [...ofGlobs("allow", allow), ...ofGlobs("deny", deny), ...ofTools];
}

/** The fault of a rule about the names that callers see: one at most. */
function judge(
  glob: string,
  sources: readonly RuleSource[],
  naming: Naming,
  denies: boolean,
): readonly string[] {
  // Not all resources are listed.
  if (glob.includes(":")) return [];
  const stem = stemOf(glob);
  const named = sources.filter(({ config }) => mayConcern(config, stem, naming));
  // Any server may have a tool of its own that a rule without a prefix denies.
  const concerned = denies && !named.some(({ config }) => config.prefix !== false) ? sources : named;
  const isKnown = concerned.every((source) => source.isSettled && source.listedFor().problems.length === 0);
  if (!isKnown) return [];
  const names = concerned.flatMap((source) => publicNamesOf(source, naming));
  const own = denies ? sources.flatMap(ownNamesOf) : [];
  if (fitsAny(glob, [...names, ...own])) return [];
  // The rule may have the server's own name, where the one that callers see was wanted.
  const owner = sources.find(
    (source) => source.config.prefix !== false && fitsAny(glob, ownNamesOf(source)),
  )?.config;
  const all = sources.flatMap((source) => publicNamesOf(source, naming));
  const isPrefixed = owner !== undefined && owner.prefix !== false;
  const meant = isPrefixed ? `${prefixOf(owner.prefix, naming)}${glob}` : suggest(glob, all);
  return [`${JSON.stringify(glob)} matches nothing that a server lists${toHint(meant)}`];
}

function mayConcern({ name, prefix, tools }: ServerConfig, stem: string, naming: Naming): boolean {
  if (prefix === false || Object.values(tools).some((rule) => rule.name?.startsWith(stem) === true))
    return true;
  const begins = [prefixOf(prefix, naming), `${name}${naming.separator}`];
  return begins.some((begin) => begin.startsWith(stem) || stem.startsWith(begin));
}

/** Everything a rule about the names that callers see may match, also what other rules leave out. */
function publicNamesOf(source: RuleSource, naming: Naming): readonly string[] {
  const { config } = source;
  const { tools, prompts, resources, templates } = source.listedFor();
  const uris = [...resources.map(({ uri }) => uri), ...templates.map(({ uriTemplate }) => uriTemplate)];
  return [
    ...tools.map(({ name }) => toToolName(config, name, naming)),
    ...prompts.map(({ name }) => toPublicName(config, name, naming)),
    ...uris.map((uri) => `${config.name}${naming.separator}${uri}`),
  ];
}

function ownNamesOf(source: RuleSource): readonly string[] {
  const { tools, prompts } = source.listedFor();
  return [...tools, ...prompts].map(({ name }) => name);
}

function fitsAny(glob: string, names: readonly string[]): boolean {
  return names.some(createGlob(glob));
}

function stemOf(glob: string): string {
  return glob.split(/[*?]/, 1)[0] ?? "";
}

/** The name that was most likely meant; of a glob, the part before its first star is compared. */
function suggest(rule: string, names: readonly string[]): string | undefined {
  const stem = stemOf(rule);
  if (stem === rule) return nearest(rule, names);
  if (stem.length < 3) return undefined;
  const near = nearest(
    stem,
    names.map((name) => name.slice(0, stem.length)),
  );
  return near === undefined ? undefined : names.find((name) => name.startsWith(near));
}

function toHint(meant: string | undefined): string {
  return meant === undefined ? ": correct or remove it" : `: did you mean ${meant}?`;
}

/** Rules that can never apply, whichever caller comes: most are mistakes, and a `deny` that never applies denies nothing. */
export function findDeadRules(config: GatewayConfig, rules: CallerRules | undefined): readonly ConfigIssue[] {
  const always = (rules?.all ?? []).filter(
    ({ kind, when, unless, profiles }) =>
      kind === "deny" && when === undefined && unless === undefined && profiles === undefined,
  );
  const denied = always.flatMap(({ names }) => names);
  return (rules?.all ?? []).flatMap(({ kind, names, scopes, path, when, unless }) => {
    const report = (message: string): readonly ConfigIssue[] => [{ path: `junctor.${path}`, message }];
    if (when?.isAboutCaller === false && when.holds(undefined) !== true)
      return report("never applies: its condition `when` is false for every caller");
    if (unless?.isAboutCaller === false && unless.holds(undefined) === true)
      return report("never applies: its condition `unless` is true for every caller");
    const unknown = (when?.members ?? []).find((member) => !canHave(config, member));
    if (unknown !== undefined)
      return report(
        `never applies: no caller of this config has ${unknown}; they come from tokens, or from "keys"`,
      );
    if (kind === "scope" && !canHave(config, "scopes"))
      return report(`can never be met: no caller of this config has the scope ${scopes.join(" ")}`);
    if (kind !== "allow" || !names.every((name) => denied.some((glob) => covers(glob, name)))) return [];
    return report("never applies: other rules deny everything that it allows");
  });
}

/** Whether some caller may have groups or scopes. */
function canHave({ keys, issuers, http }: GatewayConfig, member: string): boolean {
  if (member !== "groups" && member !== "scopes") return true;
  if (issuers.length > 0 || (member === "groups" && http.tls?.clientCa !== undefined)) return true;
  return keys.some((key) => (key[member]?.length ?? 0) > 0);
}

/** A glob without `?` fits the text of each narrower glob. */
function covers(glob: string, narrower: string): boolean {
  return glob === narrower || (!glob.includes("?") && createGlob(glob)(narrower));
}

/** The most issues that are remembered; a config that is edited forever must not fill our memory. */
const maxLogged = 1000;

/** Logs, once each, the rules of the config that match nothing. */
export class RuleWatch {
  readonly #find: () => readonly ConfigIssue[];
  readonly #log: GatewayLog;
  readonly #logged = new Set<string>();
  #isDue = false;

  constructor(find: () => readonly ConfigIssue[], log: GatewayLog) {
    this.#find = find;
    this.#log = log;
  }

  /** Something was listed, or the config changed. Looks once for all that comes in the same turn. */
  look(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      for (const { path, message } of this.#find()) this.#logOnce(path, message);
    });
  }

  #logOnce(path: string, message: string): void {
    const text = `${path}: ${message}`;
    if (this.#logged.has(text)) return;
    if (this.#logged.size >= maxLogged) this.#logged.clear();
    this.#logged.add(text);
    this.#log.warn({ path }, text);
  }
}
