import type { Policy } from "@junctor/core/compose";
import { ConfigError, type ConfigIssue } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import type { Caller } from "@junctor/core/mcp";
import { createGlob, createGlobs } from "@junctor/server/internal";
import type { AccessRule, GatewayConfig } from "../config/index.ts";
import { type CompileCondition, type Condition, loadConditions } from "./condition.ts";

/** A rule whose conditions are ready. */
export interface CompiledRule extends Pick<
  AccessRule,
  "kind" | "names" | "scopes" | "profiles" | "approval"
> {
  /** Where it stands: `rules[2]`. */
  readonly path: string;
  readonly when: Condition | undefined;
  readonly unless: Condition | undefined;
  /** For an `ask` rule: the calls that it is about. */
  readonly ifCall: Condition | undefined;
}

/** The decision about a name for a caller. */
interface RuleDecision {
  readonly kind: "allow" | "deny" | "step_up";
  /** The rule that decides, as `rules[2]`; undefined when no rule says anything. */
  readonly rule: string | undefined;
  /** For `step_up`: all scopes that are needed. */
  readonly scopes: readonly string[];
}

/** The rules of a config, which decide by caller and name. */
export interface CallerRules {
  readonly all: readonly CompiledRule[];
  /** Narrows a policy to what the rules leave to a caller. Callers to whom the same rules apply get the same policy. */
  narrow(policy: Policy, caller: Caller | undefined): Policy;
  decide(caller: Caller | undefined, name: string, ownName?: string): RuleDecision;
  /** Whether some rule asks a person. */
  readonly canAsk: boolean;
  /** The first rule by which a person must agree to a call; without arguments, to some call. */
  askFor(
    caller: Caller | undefined,
    name: string,
    ownName?: string,
    args?: RawJson,
  ): CompiledRule | undefined;
  /** The rules that apply at a profile. Without it they are those of `/mcp`. */
  at(mount: string): CallerRules;
}

/** Compiles the rules of a config. Rejects with a `ConfigError` that lists every mistake in conditions. */
export async function compileRules(config: GatewayConfig, file: string): Promise<CallerRules | undefined> {
  const { rules } = config;
  if (rules.length === 0) return undefined;
  const hasConditions = rules.some(
    ({ when, unless, ...rule }) => when !== undefined || unless !== undefined || rule.if !== undefined,
  );
  const compile = hasConditions ? await loadConditions() : undefined;
  const issues: ConfigIssue[] = [];
  const compiled = rules.map((rule, index) => compileRule(rule, `rules[${index}]`, compile, issues));
  if (issues.length > 0) throw new ConfigError(file, issues);
  const base = new Map(config.issuers.map(({ issuer, scopes = [] }) => [issuer, scopes]));
  return createRules(compiled, (caller) => base.get(caller?.issuer ?? "") ?? []);
}

function compileRule(
  { kind, names, scopes, when, unless, profiles, approval, if: ifCall }: AccessRule,
  path: string,
  compile: CompileCondition | undefined,
  issues: ConfigIssue[],
): CompiledRule {
  const condition = (key: string, text: string | undefined): Condition | undefined => {
    const made = text === undefined ? undefined : compile?.(text, key === "if");
    if (made === undefined || !("problem" in made)) return made;
    issues.push({ path: `junctor.${path}.${key}`, message: made.problem });
    return undefined;
  };
  const bound = profiles === undefined ? {} : { profiles };
  const conditions = {
    when: condition("when", when),
    unless: condition("unless", unless),
    ifCall: condition("if", ifCall),
  };
  return { kind, names, scopes, path, ...conditions, ...bound, ...(approval && { approval }) };
}

/** The most policies that are kept; groups of callers are few, and their combinations that occur are too. */
const maxPolicies = 1024;

function createRules(
  all: readonly CompiledRule[],
  baseScopes: (caller: Caller | undefined) => readonly string[],
  mount?: string,
): CallerRules {
  const here = all.filter(({ profiles }) => profiles?.includes(mount ?? "") !== false);
  const mounts = new Map<string, CallerRules>();
  // An `allow` for one profile does not count at the others.
  const hasAllow = all.some(({ kind }) => kind === "allow");
  /** By caller: conditions are evaluated once for each token. */
  const applying = new WeakMap<Caller, readonly CompiledRule[]>();
  const unnamed: Caller = { name: "" };
  const rulesFor = (caller: Caller = unnamed): readonly CompiledRule[] => {
    let rules = applying.get(caller);
    if (rules === undefined) applying.set(caller, (rules = here.filter((rule) => applies(rule, caller))));
    return rules;
  };
  const kept = new WeakMap<Policy, Map<string, Policy>>();
  const byCaller = new WeakMap<Caller, WeakMap<Policy, Policy>>();
  const make = (policy: Policy, caller: Caller): Policy => {
    const rules = rulesFor(caller);
    const lacking = rules.filter(({ scopes }) => lacks(caller, scopes));
    const scopes = baseScopes(caller);
    const key = JSON.stringify([rules.map(({ path }) => path), lacking.map(({ path }) => path), scopes]);
    let policies = kept.get(policy);
    if (policies === undefined) kept.set(policy, (policies = new Map<string, Policy>()));
    const known = policies.get(key);
    if (known !== undefined) return known;
    if (policies.size >= maxPolicies) policies.clear();
    const narrowed = toPolicy(policy, rules, hasAllow, { lacking, scopes });
    policies.set(key, narrowed);
    return narrowed;
  };
  const askers = new WeakMap<readonly CompiledRule[], Map<string, readonly CompiledRule[]>>();
  const askersOf = (caller: Caller | undefined, name: string, ownName: string): readonly CompiledRule[] => {
    const rules = rulesFor(caller);
    let asking = askers.get(rules);
    if (asking === undefined) askers.set(rules, (asking = new Map<string, readonly CompiledRule[]>()));
    const key = ownName === name ? name : `${name}\n${ownName}`;
    const known = asking.get(key);
    if (known !== undefined) return known;
    const found = rules.filter((rule) => rule.kind === "ask" && fits(rule, name, ownName));
    if (asking.size >= maxNames) asking.clear();
    asking.set(key, found);
    return found;
  };
  return {
    all,
    canAsk: here.some(({ kind }) => kind === "ask"),
    // A condition that cannot be evaluated asks.
    askFor: (caller, name, ownName = name, args) =>
      askersOf(caller, name, ownName).find(
        ({ ifCall }) => args === undefined || ifCall === undefined || ifCall.holds(caller, args) !== false,
      ),
    at: (name) => {
      let rules = mounts.get(name);
      if (rules === undefined) mounts.set(name, (rules = createRules(all, baseScopes, name)));
      return rules;
    },
    narrow: (policy, caller = unnamed) => {
      let mine = byCaller.get(caller);
      if (mine === undefined) byCaller.set(caller, (mine = new WeakMap()));
      let narrowed = mine.get(policy);
      if (narrowed === undefined) mine.set(policy, (narrowed = make(policy, caller)));
      return narrowed;
    },
    decide: (caller, name, ownName) => {
      const rules = rulesFor(caller);
      const fitting = (kind: AccessRule["kind"]): readonly CompiledRule[] =>
        rules.filter((rule) => rule.kind === kind && fits(rule, name, ownName));
      const [denied] = fitting("deny");
      if (denied !== undefined) return { kind: "deny", rule: denied.path, scopes: [] };
      const [allowed] = fitting("allow");
      if (hasAllow && allowed === undefined) return { kind: "deny", rule: undefined, scopes: [] };
      const needing = fitting("scope");
      const lack = needing.find(({ scopes }) => lacks(caller, scopes));
      if (lack === undefined) return { kind: "allow", rule: allowed?.path, scopes: [] };
      const scopes = [...new Set([...baseScopes(caller), ...needing.flatMap((each) => each.scopes)])];
      return { kind: "step_up", rule: lack.path, scopes };
    },
  };
}

/** Where a condition cannot be evaluated, an `allow` does not apply, and every other rule does. */
function applies({ kind, when, unless }: CompiledRule, caller: Caller): boolean {
  const isUnclear = kind !== "allow";
  const holds = when === undefined ? true : (when.holds(caller) ?? isUnclear);
  const isExempt = unless === undefined ? false : (unless.holds(caller) ?? !isUnclear);
  return holds && !isExempt;
}

function lacks(caller: Caller | undefined, scopes: readonly string[]): boolean {
  return scopes.some((scope) => caller?.scopes?.includes(scope) !== true);
}

/** A `deny` or a `scope` goes by either name of a thing, an `allow` by the one that callers know. */
function fits({ kind, names }: CompiledRule, name: string, ownName = name): boolean {
  if (kind === "allow") return names.some((glob) => createGlob(glob)(name));
  return !createGlobs(undefined, names)(name, ownName);
}

/** The most names whose scopes a policy remembers. */
const maxNames = 10_000;

function toPolicy(
  policy: Policy,
  rules: readonly CompiledRule[],
  hasAllow: boolean,
  {
    lacking,
    scopes: base,
  }: { readonly lacking: readonly CompiledRule[]; readonly scopes: readonly string[] },
): Policy {
  const namesOf = (kind: AccessRule["kind"]): readonly string[] =>
    rules.filter((rule) => rule.kind === kind).flatMap(({ names }) => names);
  const mayPass = createGlobs(hasAllow ? namesOf("allow") : undefined, namesOf("deny"));
  const narrowed = (name: string, ownName?: string): boolean =>
    policy(name, ownName) && mayPass(name, ownName);
  if (lacking.length === 0) return narrowed;
  const needing = rules.filter(({ kind }) => kind === "scope");
  const known = new Map<string, readonly string[] | undefined>();
  const lackingFor: Policy["lackingFor"] = (name, ownName) => {
    if (known.has(name)) return known.get(name);
    const isLacking = lacking.some((rule) => fits(rule, name, ownName));
    const all = needing.filter((rule) => fits(rule, name, ownName)).flatMap(({ scopes }) => scopes);
    const scopes = isLacking ? [...new Set([...base, ...all])] : undefined;
    if (known.size >= maxNames) known.clear();
    known.set(name, scopes);
    return scopes;
  };
  return Object.assign(narrowed, { lackingFor });
}
