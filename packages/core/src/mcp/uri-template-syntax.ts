import { UriTemplateError } from "../errors/index.ts";

/** Text that stands for itself. */
interface LiteralPart {
  readonly kind: "literal";
  readonly text: string;
}

/** One variable's value, behind the character its operator puts before it. */
export interface ValuePart {
  readonly kind: "value";
  readonly name: string;
  readonly prefix: "" | "," | "/" | "." | "#";
  /** Whether reserved characters stand as they are, as in `{+path}`. */
  readonly isReserved: boolean;
}

/** The `name=value` pairs of `{?a,b}` or `{&a,b}`, in any order, none of them needed. */
export interface QueryPart {
  readonly kind: "query";
  readonly names: readonly string[];
  readonly opener: "?" | "&";
}

export type Part = LiteralPart | ValuePart | QueryPart;

const maxTemplateLength = 1_000;
const maxVariables = 32;
const variableName = /^(?:\w|%[0-9a-fA-F]{2})(?:[.\w]|%[0-9a-fA-F]{2})*$/;

/**
 * Takes a template of RFC 6570 levels 1 to 3 apart, without `{;x}`.
 *
 * @throws {@link UriTemplateError}
 */
export function parseParts(template: string): readonly Part[] {
  if (template.length > maxTemplateLength) {
    throw new UriTemplateError(
      "uri_template.too_long",
      template,
      `is longer than ${maxTemplateLength} characters`,
    );
  }
  const parts: Part[] = [];
  for (let at = 0; at < template.length;) {
    const open = template.indexOf("{", at);
    const end = open === -1 ? template.length : open;
    if (end > at) parts.push(toLiteral(template, template.slice(at, end)));
    if (open === -1) break;
    const close = template.indexOf("}", open);
    if (close === -1) throw invalid(template, `"{" at ${open} is never closed`);
    parts.push(...parseExpression(template, template.slice(open + 1, close)));
    at = close + 1;
  }
  const merged = mergeQueries(template, parts);
  checkVariables(template, merged);
  return merged;
}

/** The variables of a part, in order. */
export function variablesOf(part: Part): readonly string[] {
  switch (part.kind) {
    case "literal":
      return [];
    case "value":
      return [part.name];
    case "query":
      return part.names;
  }
}

function toLiteral(template: string, text: string): LiteralPart {
  if (text.includes("}")) throw invalid(template, `"}" has no "{" before it`);
  return { kind: "literal", text: encodeReserved(text) };
}

/** Encodes characters that a URI cannot have. Reserved characters and escapes stay as they are. */
export function encodeReserved(text: string): string {
  return encodeURI(text)
    .replaceAll("%5B", "[")
    .replaceAll("%5D", "]")
    .replace(/%25([0-9a-fA-F]{2})/g, "%$1");
}

function parseExpression(template: string, body: string): readonly Part[] {
  const operator = /^[+#./?&]/.exec(body)?.[0] ?? "";
  const names = body.slice(operator.length).split(",");
  for (const name of names) checkName(template, body, name);
  switch (operator) {
    case "?":
    case "&":
      return [{ kind: "query", names, opener: operator }];
    case "/":
    case ".":
      // `{/a,b}` is `{/a}{/b}`.
      return names.map((name) => ({ kind: "value", name, prefix: operator, isReserved: false }));
    default: {
      const first = operator === "#" ? "#" : "";
      const isReserved = operator !== "";
      return names.map((name, index) => ({
        kind: "value",
        name,
        prefix: index === 0 ? first : ",",
        isReserved,
      }));
    }
  }
}

function checkName(template: string, body: string, name: string): void {
  if (variableName.test(name)) return;
  if (/[*:]/.test(name))
    throw invalid(template, `{${body}} has a modifier, "*" or ":n", which is not supported`);
  if (/^[;=,!@|$]/.test(body)) throw invalid(template, `{${body}} has an operator that is not supported`);
  throw invalid(template, `{${body}} has ${JSON.stringify(name)} where a variable's name should be`);
}

/** `{?a}{&b}` is one query: its pairs may come in any order. A query runs to the fragment or the end. */
function mergeQueries(template: string, parts: readonly Part[]): readonly Part[] {
  const merged: Part[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (last?.kind !== "query") {
      merged.push(part);
    } else if (part.kind === "query" && part.opener === "&") {
      merged[merged.length - 1] = { ...last, names: [...last.names, ...part.names] };
    } else if (
      (part.kind === "value" && part.prefix === "#") ||
      (part.kind === "literal" && part.text[0] === "#")
    ) {
      merged.push(part);
    } else {
      throw invalid(template, `only {&…} or a fragment may follow {${last.opener}${last.names.join(",")}}`);
    }
  }
  return merged;
}

function checkVariables(template: string, parts: readonly Part[]): void {
  const names = parts.flatMap(variablesOf);
  if (names.length > maxVariables) {
    throw new UriTemplateError("uri_template.too_long", template, `has more than ${maxVariables} variables`);
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(template, `the variable ${JSON.stringify(twice)} is there twice`);
}

function invalid(template: string, message: string): UriTemplateError {
  return new UriTemplateError("uri_template.invalid", template, message);
}
