import { UriTemplateError } from "../errors/index.ts";
import { matchParts } from "./uri-template-match.ts";
import { encodeReserved, type Part, parseParts, variablesOf } from "./uri-template-syntax.ts";

/** A parsed URI template (RFC 6570), as resource templates use them. */
export interface UriTemplate {
  /** The names of its variables, in the order they appear. */
  readonly variables: readonly string[];
  /**
   * The URI with these values in place. A variable without a value leaves its expression out.
   *
   * @throws {@link UriTemplateError} when the URI would pass 8 KiB, or a value is not well-formed text.
   */
  expand(values: Readonly<Record<string, string | undefined>>): string;
  /**
   * The values that make the template this URI, or undefined when it is not one of the template's.
   *
   * `{x}` and `{+x}` need at least one character; expressions with a prefix of their own may be absent. Values are
   * decoded, so that even one of `{x}` may hold `/` or `..`: check it before using it as a path.
   */
  match(uri: string): Record<string, string> | undefined;
}

const maxUriLength = 8 * 1024;

/**
 * Parses a URI template: literals, `{x}`, `{+x}`, `{#x}`, `{/x}`, `{.x}`, `{?x,y}`, `{&x,y}`.
 *
 * @throws {@link UriTemplateError} when it is malformed, uses a modifier or another operator, names a variable twice, is
 * longer than 1,000 characters or has more than 32 variables.
 * @example
 * const template = parseUriTemplate("repo://{owner}/{name}{/path}{?ref}");
 * template.match("repo://octo/hello?ref=main"); // { owner: "octo", name: "hello", ref: "main" }
 */
export function parseUriTemplate(text: string): UriTemplate {
  const parts = parseParts(text);
  return {
    variables: parts.flatMap(variablesOf),
    expand(values) {
      const uri = expandParts(parts, values, text);
      if (uri.length <= maxUriLength) return uri;
      throw new UriTemplateError(
        "uri_template.too_long",
        text,
        `would give a URI of ${uri.length} characters`,
      );
    },
    match: (uri) => (uri.length > maxUriLength ? undefined : matchParts(parts, uri)),
  };
}

function expandParts(
  parts: readonly Part[],
  values: Readonly<Record<string, string | undefined>>,
  template: string,
): string {
  const valueOf = (name: string): string | undefined =>
    Object.hasOwn(values, name) ? values[name] : undefined;
  let uri = "";
  // What to put before the next value of a list: the expression's own prefix until one is there, then a comma.
  let opener = "";
  for (const part of parts) {
    if (part.kind === "literal") {
      uri += part.text;
    } else if (part.kind === "query") {
      const pairs = part.names.flatMap((name) => {
        const value = valueOf(name);
        return value === undefined ? [] : [`${name}=${encode(value, false, name, template)}`];
      });
      if (pairs.length > 0) uri += part.opener + pairs.join("&");
    } else {
      if (part.prefix !== ",") opener = part.prefix;
      const value = valueOf(part.name);
      if (value === undefined) continue;
      uri += opener + encode(value, part.isReserved, part.name, template);
      opener = ",";
    }
  }
  return uri;
}

function encode(value: string, isReserved: boolean, name: string, template: string): string {
  try {
    return isReserved ? encodeReserved(value) : encodeStrictly(value);
  } catch (cause) {
    throw new UriTemplateError(
      "uri_template.invalid",
      template,
      `the value of "${name}" is not well-formed text`,
      {
        cause,
      },
    );
  }
}

/** Everything but unreserved characters (RFC 3986, section 2.3): encodeURIComponent leaves five more. */
function encodeStrictly(value: string): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (character) => {
    return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  });
}
