import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { runs } from "../../../../test/support/runs.ts";
import { allowAll } from "../../../core/src/compose/view.ts";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Caller } from "../../../core/src/mcp/session.ts";
import type { GatewayConfig } from "../config/config.ts";
import { toAgreedPart } from "../config/edits.ts";
import { parseConfigValue } from "../config/parse-config.ts";
import { type CallerRules, compileRules } from "./rules.ts";

const http = { publicUrl: "https://mcp.example.com/mcp" };
const issuer = "https://id.example.com";
const parse = (rules: unknown): GatewayConfig =>
  parseConfigValue(
    { mcpServers: {}, junctor: { http, issuers: { corp: { issuer, scopes: ["mcp:use"] } }, rules } },
    { file: "f", env: {} },
  );
const compile = async (rules: unknown): Promise<CallerRules> => (await compileRules(parse(rules), "f"))!;

const caller = (more: Partial<Caller> = {}): Caller => ({
  name: "corp:1",
  issuer,
  scopes: ["mcp:use"],
  groups: [],
  ...more,
});
const engineer = caller({ groups: ["eng"] });
const admin = caller({ groups: ["eng", "admin"] });
const guest = caller();

const example = [
  { allow: ["github__*"], when: "'eng' in caller.groups" },
  { deny: ["*__delete_*"], unless: "'admin' in caller.groups" },
  { scope: "mcp:write", tools: ["*__create_*"] },
];

describe("rules", () => {
  test("allow, deny and want scopes by caller and name", async () => {
    const rules = await compile(example);
    const of = (who: Caller, name: string): string => {
      const { kind, rule, scopes } = rules.decide(who, name);
      return [kind, rule, ...scopes].join(" ");
    };
    expect(of(guest, "github__search")).toBe("deny ");
    expect(of(engineer, "github__search")).toBe("allow rules[0]");
    expect(of(engineer, "files__read")).toBe("deny ");
    expect(of(engineer, "github__delete_repo")).toBe("deny rules[1]");
    expect(of(admin, "github__delete_repo")).toBe("allow rules[0]");
    expect(of(admin, "github__create_issue")).toBe("step_up rules[2] mcp:use mcp:write");
    expect(of({ ...admin, scopes: ["mcp:write"] }, "github__create_issue")).toBe("allow rules[0]");
  });

  test("apply at their profiles only, and an allow for one of them does not count for others", async () => {
    const config = parseConfigValue(
      {
        mcpServers: {},
        junctor: {
          profiles: { review: {}, other: {} },
          rules: [
            { allow: ["a__*"], profiles: ["review"] },
            { deny: ["*__delete"], profiles: ["review"] },
          ],
        },
      },
      { file: "f", env: {} },
    );
    const rules = (await compileRules(config, "f"))!;
    const mayUse = (at: CallerRules, name: string): boolean => at.narrow(allowAll, undefined)(name, name);
    expect(mayUse(rules.at("review"), "a__read")).toBe(true);
    expect(mayUse(rules.at("review"), "a__delete")).toBe(false);
    expect(mayUse(rules.at("review"), "b__read")).toBe(false);
    for (const elsewhere of [rules, rules.at("other")]) expect(mayUse(elsewhere, "a__read")).toBe(false);
    expect(rules.at("review")).toBe(rules.at("review"));
  });

  test("leave all to all callers where there is no allow", async () => {
    const rules = await compile([{ deny: ["a__*"] }]);
    expect([rules.decide(guest, "b__x").kind, rules.decide(guest, "a__x").kind]).toEqual(["allow", "deny"]);
  });

  test("deny by a server's own name too, and allow by the public one only", async () => {
    const rules = await compile([{ deny: ["delete_*"] }, { allow: ["github__*", "delete_*"] }]);
    expect(rules.decide(guest, "github__delete_repo", "delete_repo").kind).toBe("deny");
    expect(rules.decide(guest, "files__search", "github__search").kind).toBe("deny");
  });

  test("deny resources and want scopes for them in every case, and allow them as they are written", async () => {
    const decide = async (rule: object): Promise<readonly string[]> => {
      const rules = await compile([rule]);
      return ["a", "A"].map((letter) => {
        const uri = `file:///${letter}/b`;
        return rules.decide(guest, `disk__${uri}`, uri).kind;
      });
    };
    expect(await decide({ deny: ["file:///a/*"] })).toEqual(["deny", "deny"]);
    expect(await decide({ scope: "s", tools: ["file:///a/*"] })).toEqual(["step_up", "step_up"]);
    expect(await decide({ allow: ["disk__file:///a/*"] })).toEqual(["allow", "deny"]);
  });

  test("that cannot be evaluated deny, want scopes, and do not allow", async () => {
    const when = "caller.groups[0] == 'eng'";
    const kinds = [
      { allow: ["*"], when },
      { allow: ["*"], unless: when },
      { deny: ["*"], when },
    ];
    for (const rule of [...kinds, { deny: ["*"], unless: when }])
      expect((await compile([rule])).decide(guest, "a__x").kind).toBe("deny");
    expect((await compile([{ scope: "s", tools: ["*"], when }])).decide(guest, "a__x").kind).toBe("step_up");
  });

  test("say the same of a name in a list and in a call, for every caller", async () => {
    const word = fc.constantFrom("a", "b", "eng", "admin");
    const glob = fc.constantFrom("*", "a__*", "*__x", "a__x", "b__*");
    const condition = fc.constantFrom(undefined, "'eng' in caller.groups", "caller.groups[0] == 'a'");
    const rule = fc
      .record({
        kind: fc.constantFrom("allow", "deny", "scope"),
        names: fc.array(glob, { minLength: 1, maxLength: 2 }),
        when: condition,
        unless: condition,
      })
      .map(({ kind, names, ...conditions }) =>
        kind === "scope" ? { scope: "s", tools: names, ...conditions } : { [kind]: names, ...conditions },
      );
    await fc.assert(
      fc.asyncProperty(
        fc.array(rule, { minLength: 1, maxLength: 4 }),
        fc.array(word),
        fc.boolean(),
        async (given, groups, hasScope) => {
          const rules = await compile(given);
          const who = caller({ groups, scopes: hasScope ? ["s"] : [] });
          const policy = rules.narrow(allowAll, who);
          expect(rules.narrow(allowAll, { ...who })).toBe(policy);
          for (const name of ["a__x", "a__y", "b__x", "b__y"]) {
            const { kind } = rules.decide(who, name);
            expect(policy(name)).toBe(kind !== "deny");
            if (kind !== "deny") expect(policy.lackingFor?.(name) !== undefined).toBe(kind === "step_up");
          }
        },
      ),
      { numRuns: runs(300) },
    );
  });
});

describe("a condition is refused", () => {
  test.each([
    ["caller.gruops", "is wrong: No such key: gruops"],
    ["'a' in", /^is wrong: /],
    ["caller.name", "must be true or false, and is of the type string"],
    ["tool.name == 'x'", /^is wrong: /],
    [
      "caller.name.matches('(a+)+$')",
      "uses matches(), which can take forever: use ==, in, startsWith(), endsWith() or contains()",
    ],
    [
      "caller.groups.all(a, caller.groups.exists(b, a == b))",
      "has a loop in a loop, which can take forever: write it with one",
    ],
  ])("%s", async (when, message) => {
    const compiled = compile([{ deny: ["a"] }, { deny: ["*"], when }]);
    const error = (await compiled.catch((thrown: unknown) => thrown)) as ConfigError;
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.issues[0]?.path).toBe("junctor.rules[1].when");
    expect(error.issues[0]?.message).toMatch(message);
  });
});

describe("the section", () => {
  const complaintOf = (rules: unknown): string => {
    try {
      parse(rules);
      return "nothing is wrong";
    } catch (error) {
      return (error as Error).message.replaceAll(/^f: junctor\./gm, "");
    }
  };
  test.each([
    [{}, /^rules: must be an array of rules: write /],
    [[null], /^rules\[0\]: must be a rule: write /],
    [[{ when: "true" }], /^rules\[0\]: must have one of allow, deny, scope and ask: write /],
    [[{ allow: ["a"], deny: ["b"] }], /^rules\[0\]: must have one of allow, deny, scope and ask: write /],
    [[{ allow: [] }], /^rules\[0\]\.allow: is empty: /],
    [[{ alow: ["a"] }], /^rules\[0\]\.alow: is not known here: did you mean allow\?/],
    [[{ scope: "s" }], /^rules\[0\]: does not say what the scope is for: /],
    [[{ scope: "a b", tools: ["*"] }], /^rules\[0\]\.scope: is not a name of a scope: /],
    [
      [{ deny: ["a"], tools: ["b"] }],
      /^rules\[0\]\.tools: does not belong here: write the globs into "deny"/,
    ],
  ])("%j is refused", (rules, message) => {
    expect(complaintOf(rules)).toMatch(message);
  });
});

describe("of an edit", () => {
  const [allow, deny, scope] = example as [object, object, object];
  const edit = (before: readonly object[], after: readonly object[]): readonly [boolean, number] => {
    const { config, waiting } = toAgreedPart(parse(after), parse(before));
    return [waiting.length > 0, config.rules.length];
  };
  test.each<[string, object[], object[], boolean, number]>([
    ["a new deny is used at once", [deny], [deny, { deny: ["x"] }], false, 2],
    ["a new scope is used at once", [], [scope], false, 1],
    ["the first allow is used at once", [deny], [deny, allow], false, 2],
    ["another allow waits", [allow], [allow, { allow: ["*"] }], true, 1],
    ["an allow that is gone is used at once", [allow, { allow: ["x"] }], [allow], false, 1],
    ["the last allow that is gone waits", [allow], [], true, 1],
    ["a deny that is gone waits", [deny], [], true, 1],
    ["a scope that is gone waits", [deny, scope], [deny], true, 2],
    ["a looser condition waits, and both hold", [deny], [{ ...deny, unless: "true" }], true, 2],
  ])("%s", (_, before, after, waits, count) => {
    expect(edit(before, after)).toEqual([waits, count]);
  });
});

describe("a rule that asks", () => {
  const asks = async (rule: object, args: string, who?: Caller): Promise<string | undefined> => {
    const rules = await compileRules(parse([rule]), "config");
    return rules?.askFor(who, "shop__pay", undefined, RawJson.fromText(args))?.path;
  };

  test.each([
    ["arguments.sum > 100", '{"sum":101}', true],
    ["arguments.sum > 100", '{"sum":100}', false],
    ["arguments.sum > 100", '{"sum":1e400}', true],
    ["arguments.sum == 150", '{"sum":150}', true],
    ["arguments.sum > 100", "{}", true],
    ["arguments.sum > 100", '{"sum":"9"}', true],
    ["arguments.sum > 100", '{"sum":1000,"sum":1}', true],
    ["arguments.sum > 100", '{"sum":1,"note":"a:b{\\"c\\":1}"}', false],
    ["arguments.to.startsWith('bob')", '{"to":"bobby"}', true],
    ["arguments.to.startsWith('bob')", '{"to":"ann","more":{"a":[{"b":1}]}}', false],
    ["arguments.list.exists(one, one == 'x')", '{"list":["y","x"]}', true],
    ["has(arguments.force) && arguments.force == true", '{"sum":1}', false],
    ["arguments.sum > 1 && caller.name == 'ada'", '{"sum":2}', false],
  ])("with %s about %s: %s", async (condition, args, expected) => {
    expect((await asks({ ask: ["shop__*"], if: condition }, args)) !== undefined).toBe(expected);
  });

  test("asks about what it names alone, and where its conditions about the caller hold", async () => {
    expect(await asks({ ask: ["other__*"] }, "{}")).toBeUndefined();
    const rule = { ask: ["shop__*"], unless: "'ops' in caller.groups" };
    expect(await asks(rule, "{}", { name: "ada", groups: ["ops"] })).toBeUndefined();
    expect(await asks(rule, "{}", { name: "bob" })).toBe("rules[0]");
  });

  test("conditions about who sees what know no arguments", async () => {
    await expect(asks({ deny: ["a"], when: "arguments.sum > 1" }, "{}")).rejects.toThrow("is wrong");
  });
});
