import { keys, type KeysOf, suggest } from "@junctor/core/options";
import type { JsonSchema, SchemaSource } from "../registry/index.ts";
import { toSchema } from "../registry/index.ts";
import type { AppContext } from "./types.ts";

const contextKeys: KeysOf<AppContext<unknown> & { readonly uri: string }> = {
  ...keys("user ask visit sample roots once progress log status canShow uri"),
  ...keys("signal cancellation caller revision capabilities clientInfo meta headers"),
  ...keys("wantsProgress logLevel session release observation"),
};

/** The arguments that a handler may take, and words for messages about them. */
interface Accepted {
  /** Such as `Tool "weather"`. */
  readonly what: string;
  /** Such as `arguments`. */
  readonly plural: string;
  /** Undefined where they are not known. */
  readonly names: readonly string[] | undefined;
}

/**
 * Throws a `TypeError` for a handler that takes an argument it will never get: `({ cty }) => …` where the argument is `city`. In TypeScript
 * the compiler finds that; here the text of the function is read, as far as its parameters are plain patterns.
 */
export function assertTakes(handler: unknown, { what, plural, names }: Accepted): void {
  if (typeof handler !== "function") return;
  const [subject, context] = readParameters(Function.prototype.toString.call(handler));
  if (names !== undefined) assertNames(what, subject, names, plural);
  assertNames(what, context, Object.keys(contextKeys), "members");
}

function assertNames(
  what: string,
  taken: readonly string[] | undefined,
  names: readonly string[],
  plural: string,
): void {
  const wrong = taken?.find((name) => !names.includes(name));
  if (wrong === undefined) return;
  const all = names.length === 0 ? "there are none" : `there are ${names.join(", ")}`;
  throw new TypeError(
    `${what}: the handler takes ${JSON.stringify(wrong)}, which is not one of its ${plural}; ${suggest(wrong, names, all)}`,
  );
}

/** The names of the arguments that a handler gets for a schema; undefined if there may be others, or a transform may change them. */
export function namesOf(source: SchemaSource | undefined, handler: unknown): readonly string[] | undefined {
  if (source === undefined) return [];
  const [taken] =
    typeof handler === "function" ? readParameters(Function.prototype.toString.call(handler)) : [];
  if (taken === undefined) return undefined;
  try {
    return propertiesOf(toSchema(source, { side: "output" }).json);
  } catch {
    return undefined;
  }
}

function propertiesOf(json: JsonSchema): readonly string[] | undefined {
  const isOpen = ["anyOf", "oneOf", "allOf", "$ref", "patternProperties", "if"].some(
    (keyword) => keyword in json,
  );
  const { additionalProperties = false, properties } = json;
  if (isOpen || additionalProperties !== false || typeof properties !== "object" || properties === null)
    return undefined;
  return Object.keys(properties);
}

/** The names that each parameter destructures; undefined for a parameter that is not destructured. */
function readParameters(text: string): readonly (readonly string[] | undefined)[] {
  const head = /^(?:async\b\s*)?(?:function\b\s*)?\*?\s*[\w$]*\s*\(/.exec(text)?.[0];
  if (head === undefined) return [];
  return splitAtCommas(text.slice(head.length)).map((parameter) => {
    const pattern = parameter.trim();
    if (!pattern.startsWith("{")) return undefined;
    return splitAtCommas(pattern.slice(1)).flatMap((member) => {
      const name = /^\s*(?:(["'])(.*?)\1|([\w$]+))\s*(?:[:=]|$)/.exec(member);
      return name === null ? [] : [name[2] ?? name[3] ?? ""];
    });
  });
}

const closers: { readonly [opener: string]: string } = { "(": ")", "[": "]", "{": "}" };

/** The parts between commas, up to the bracket that closes the list. None for a text with comments or templates. */
function splitAtCommas(text: string): readonly string[] {
  const parts: string[] = [];
  const open: string[] = [];
  let part = "";
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    const isInText = quote !== "";
    if (character === "`" || (!isInText && character === "/" && /[/*]/.test(text[at + 1] ?? ""))) return [];
    if (isInText) quote = character === quote ? "" : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (closers[character] !== undefined) open.push(closers[character]);
    else if (open.length > 0 && character === open.at(-1)) open.pop();
    else if (open.length === 0 && /[)\]}]/.test(character))
      return part.trim() === "" ? parts : [...parts, part];
    else if (open.length === 0 && character === ",") {
      parts.push(part);
      part = "";
      continue;
    }
    part += character;
  }
  return [];
}
