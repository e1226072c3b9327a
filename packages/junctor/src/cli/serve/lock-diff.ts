import { type Approved, type LockPart, lockParts, toCanonicalJson } from "../../lock/index.ts";

/** A definition that is to be approved, or that is gone. */
interface DefinitionChange {
  readonly part: LockPart;
  readonly name: string;
  readonly kind: "new" | "changed" | "gone";
  readonly before: unknown;
  readonly after: unknown;
}

const nouns: { readonly [Part in LockPart]: string } = {
  instructions: "instructions",
  tools: "tool",
  prompts: "prompt",
  resources: "resource",
  templates: "resource template",
};

const signs = { new: "+", changed: "~", gone: "-" } as const;

const none: ReadonlyMap<string, unknown> = new Map();

/** What differs between the approved definitions of a server and those that it lists now. */
export function diffDefinitions(before: Approved, after: Approved): readonly DefinitionChange[] {
  return lockParts.flatMap((part) => {
    const [old, now] = [before.get(part) ?? none, after.get(part) ?? none];
    return [...new Set([...old.keys(), ...now.keys()])].toSorted().flatMap((name): DefinitionChange[] => {
      const both = { part, name, before: old.get(name), after: now.get(name) };
      if (!old.has(name)) return [{ ...both, kind: "new" }];
      if (!now.has(name)) return [{ ...both, kind: "gone" }];
      const isSame = toCanonicalJson(both.before) === toCanonicalJson(both.after);
      return isSame ? [] : [{ ...both, kind: "changed" }];
    });
  });
}

/**
 * A change as a person reads it, member by member. Nothing is cut short, because a cut would be a place to hide text in, and
 * every character that a terminal obeys or does not show is escaped.
 */
export function describeChange({ part, name, kind, before, after }: DefinitionChange): string {
  const head = [signs[kind], nouns[part], ...(part === "instructions" ? [] : [toShown(name)]), kind].join(
    " ",
  );
  if (kind === "gone") return `  ${head}\n`;
  const [old, now] = [flatten(before), flatten(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])];
  const lines = paths.flatMap((path) => {
    const [was, is] = [old.get(path), now.get(path)];
    if (was === is) return [];
    const label = path === "" ? [] : [`      ${path}`];
    return [...label, ...toLines("-", was), ...toLines("+", is)];
  });
  return `${[`  ${head}`, ...lines].join("\n")}\n`;
}

function toLines(sign: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : value.split("\n").map((line) => `        ${sign} ${line}`);
}

/** The leaves of a definition, as shown text, by their paths. */
function flatten(value: unknown): ReadonlyMap<string, string> {
  const leaves = new Map<string, string>();
  const visit = (each: unknown, path: string): void => {
    if (typeof each === "object" && each !== null && Object.keys(each).length > 0)
      for (const [key, member] of Object.entries(each))
        visit(member, Array.isArray(each) ? `${path}[${key}]` : joinKey(path, key));
    else leaves.set(path, typeof each === "string" ? toShownText(each) : toCanonicalJson(each));
  };
  if (value !== undefined) visit(value, "");
  return leaves;
}

function joinKey(path: string, key: string): string {
  if (!/^[\w$-]+$/.test(key)) return `${path}[${escapeText(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

/** A text over as many lines as it has. */
function toShownText(text: string): string {
  return text.split("\n").map(escapeText).join("\n");
}

/** A name as it is, if it is plain; else escaped. */
function toShown(name: string): string {
  return /^[\x21-\x7e]+$/.test(name) ? name : escapeText(name);
}

/** Controls, formats such as marks of direction and tags, separators, odd blanks, and characters that are not assigned. */
const unseen =
  /[\p{C}\p{Zl}\p{Zp}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]|(?! )\p{Zs}/gu;

/** The text as a JSON string in which every character can be seen. */
function escapeText(text: string): string {
  return showUnseen(JSON.stringify(text));
}

/** The text with an escape for each character that a terminal obeys or does not show. */
export function showUnseen(text: string): string {
  return text.replaceAll(unseen, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16);
    return code.length > 4 ? `\\u{${code}}` : `\\u${code.padStart(4, "0")}`;
  });
}
