import { SchemaError } from "../errors/index.ts";
import { clip } from "./issue.ts";
import type { Subschema } from "./survey.ts";

// A base for documents without an `$id`, or with a relative one. Nothing is ever fetched from it.
const namelessBase = "schema:///";

const refKeywords = ["$ref", "$dynamicRef", "$recursiveRef"];

/**
 * Makes sure that every reference leads to a place in the same document, by pointer, `$id` or anchor (JSON Schema
 * 2020-12 core, section 8.2). MCP 2026-07-28 forbids fetching, and an unresolved reference must not mean "accept all".
 *
 * @throws {@link SchemaError} `schema.ref`.
 */
export function checkRefs(subschemas: readonly Subschema[]): void {
  const bases = new Map<Subschema, string>();
  const resources = new Map<string, unknown>();
  const anchors = new Set<string>();

  for (const subschema of subschemas) {
    const { node, parent } = subschema;
    const outer = parent === undefined ? namelessBase : (bases.get(parent) ?? namelessBase);
    let base = outer;
    const id = node["$id"];
    if (typeof id === "string") {
      // Up to draft-07, `"$id": "#name"` is how an anchor is written.
      if (id.startsWith("#") && id.length > 1) anchors.add(`${outer}${id}`);
      else base = resolveUrl(id, outer)?.[0] ?? outer;
    }
    bases.set(subschema, base);
    if (parent === undefined || base !== outer) resources.set(base, node);
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const name = node[keyword];
      if (typeof name === "string") anchors.add(`${base}#${name}`);
    }
  }

  for (const subschema of subschemas) {
    for (const keyword of refKeywords) {
      const ref = subschema.node[keyword];
      // `$ref` is also a fine name for an unknown keyword's data; the compiler refuses a `$ref` that is not a string.
      if (typeof ref !== "string") continue;
      const [document, fragment] = resolveUrl(ref, bases.get(subschema) ?? namelessBase) ?? ["", ""];
      const isFound =
        resources.has(document) &&
        (fragment === "" || fragment.startsWith("/")
          ? pointsToSomething(resources.get(document), fragment)
          : anchors.has(`${document}#${fragment}`));
      if (!isFound) throw refError(keyword, ref, subschema.path);
    }
  }
}

/** The error for a reference that leads nowhere in the document. */
export function refError(keyword: string, ref: string, path: string, cause?: unknown): SchemaError {
  return new SchemaError(
    "schema.ref",
    `The schema's ${keyword} ${JSON.stringify(clip(ref, 200))} at ${path || "/"} leads to nothing in the same document. ` +
      `References are never fetched: put what it names under "$defs".`,
    { path, cause },
  );
}

/** The absolute address without its fragment, and the fragment, decoded. */
function resolveUrl(
  reference: string,
  base: string,
): readonly [document: string, fragment: string] | undefined {
  if (!URL.canParse(reference, base)) return undefined;
  const url = new URL(reference, base);
  const fragment = url.hash.slice(1);
  url.hash = "";
  try {
    return [url.href, decodeURIComponent(fragment)];
  } catch {
    return undefined;
  }
}

function pointsToSomething(root: unknown, pointer: string): boolean {
  let node = root;
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof node !== "object" || node === null || !Object.hasOwn(node, key)) return false;
    node = (node as Record<string, unknown>)[key];
  }
  return (typeof node === "object" && node !== null) || typeof node === "boolean";
}
