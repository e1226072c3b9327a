import type { RawJson } from "@junctor/core/json";
import type { Caller } from "@junctor/core/mcp";
import type { Environment } from "@marcbachmann/cel-js";

/** A condition of a rule, ready to be asked. */
export interface Condition {
  /** Whether it holds for a caller; undefined where it cannot be evaluated. */
  holds(caller: Caller | undefined, args?: RawJson): boolean | undefined;
  /** Whether it looks at the caller at all. */
  readonly isAboutCaller: boolean;
  /** The members of the caller that it looks at. */
  readonly members: readonly string[];
}

/** Turns a text into a condition, or says what is wrong with the text. */
export type CompileCondition = (text: string, isOfCall?: boolean) => Condition | { readonly problem: string };

/** Macros walk through a list; one in another takes as many steps as the product of both lists. */
const macros = new Set(["all", "exists", "exists_one", "map", "filter"]);

/** Loads the language of conditions (CEL), which is not needed where there are none. */
export async function loadConditions(): Promise<CompileCondition> {
  const { Environment: CelEnvironment } = await import("@marcbachmann/cel-js");
  const environment = new CelEnvironment({
    limits: { maxAstNodes: 500, maxDepth: 50, maxListElements: 200 },
  });
  environment.registerVariable({ name: "caller", schema: callerSchema });
  // Rules about who sees what know no call; only `if` does.
  const ofCall = environment.clone().registerVariable({ name: "arguments", type: "map" });
  return (text, isOfCall = false) => compile(text, isOfCall ? ofCall : environment);
}

const callerSchema = {
  name: "string",
  issuer: "string",
  subject: "string",
  clientId: "string",
  scopes: "list<string>",
  groups: "list<string>",
};

function compile(text: string, environment: Environment): ReturnType<CompileCondition> {
  const checked = environment.check(text);
  if (!checked.valid) return { problem: `is wrong: ${firstLine(checked.error)}` };
  if (checked.type !== "bool")
    return { problem: `must be true or false, and is of the type ${checked.type}` };
  const run = environment.parse(text);
  const found: AstFacts = { members: new Set(), calls: new Set(), isAboutCaller: false, isNested: false };
  look(run.ast, found, 0);
  // A regular expression of JavaScript can be made to take forever by the name of a group.
  if (found.calls.has("matches"))
    return {
      problem: "uses matches(), which can take forever: use ==, in, startsWith(), endsWith() or contains()",
    };
  if (found.isNested) return { problem: "has a loop in a loop, which can take forever: write it with one" };
  return {
    isAboutCaller: found.isAboutCaller,
    members: [...found.members],
    holds: (caller, args) => {
      try {
        const given = args === undefined ? {} : { arguments: toUnambiguous(args) };
        const result: unknown = run({ caller: toValue(caller), ...given });
        return typeof result === "boolean" ? result : undefined;
      } catch {
        // Such as the third group of a caller that has two; the rule says what that means.
        return undefined;
      }
    },
  };
}

/**
 * Arguments as a value. Throws where a key occurs twice: a server may read the other one. In JSON there is one colon outside of texts
 * for each key.
 */
function toUnambiguous(args: RawJson): unknown {
  const { value } = args;
  const colons = args.text.replaceAll(/"(?:[^"\\]|\\.)*"/g, "").split(":").length - 1;
  if (colons !== countKeys(value)) throw new Error("A key occurs twice");
  return value;
}

function countKeys(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value).reduce((sum: number, each: unknown) => sum + countKeys(each), 0);
  return Array.isArray(value) ? inner : inner + Object.keys(value).length;
}

/** A member that is not known is empty, so that a condition about it does not hold. */
function toValue(caller: Caller | undefined): { readonly [Member in keyof typeof callerSchema]: unknown } {
  return {
    name: caller?.name ?? "",
    issuer: caller?.issuer ?? "",
    subject: caller?.subject ?? "",
    clientId: caller?.clientId ?? "",
    scopes: caller?.scopes ?? [],
    groups: caller?.groups ?? [],
  };
}

interface AstFacts {
  readonly members: Set<string>;
  readonly calls: Set<string>;
  isAboutCaller: boolean;
  isNested: boolean;
}

/** Walks through a syntax tree: nodes are objects with `op` and `args`. */
function look(node: unknown, found: AstFacts, loops: number): void {
  if (Array.isArray(node)) return node.forEach((each) => look(each, found, loops));
  if (typeof node !== "object" || node === null || !("op" in node)) return;
  const { op, args } = node as { readonly op: string; readonly args: unknown };
  if (op === "value") return;
  if (op === "id") found.isAboutCaller ||= args === "caller";
  let inner = loops;
  if ((op === "call" || op === "rcall") && Array.isArray(args)) {
    const name = String(args[0]);
    found.calls.add(name);
    if (op === "rcall" && macros.has(name)) inner++;
    found.isNested ||= inner > 1;
  }
  if (op === "." && Array.isArray(args)) found.members.add(String(args[1]));
  look(args, found, inner);
}

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "";
}
