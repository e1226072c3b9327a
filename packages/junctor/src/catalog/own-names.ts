import type { UriNames, View } from "@junctor/core/compose";
import { originKey, type Part, type Tool, withMembers } from "@junctor/core/mcp";
import { type CallerInfo, type Provider, withNames } from "@junctor/core/provider";
import { readResultName } from "../context/index.ts";

/** How the things of one server are called in the gateway. */
interface OwnNames {
  /** The part of the catalog that has this server's things alone. */
  readonly viewFor: (caller: CallerInfo) => View;
  readonly uris: () => UriNames | undefined;
}

/**
 * The things of one server under the names and URIs that the server itself uses. It is outside of the middleware: rules, limits and records
 * see the names of the gateway.
 */
export function withOwnNames(inner: Provider, { viewFor, uris }: OwnNames): Provider {
  return withNames(inner, {
    parts: ["tools", "prompts", "resources", "templates", "skills"],
    toInner: (part, own, caller) => {
      const claims = claimsOf(part, viewFor(caller));
      if (claims === undefined) return uris()?.toPublic(own) ?? own;
      for (const [name, claim] of claims) if (claim.ownName === own) return name;
      // Not the server's: it reads on in a result that was cut.
      return part === "tools" && own === readResultName ? own : undefined;
    },
    toOuter: (part, name, caller) => {
      if (part === "templates") return name;
      const claims = claimsOf(part, viewFor(caller));
      return claims === undefined ? (uris()?.toOwn(name) ?? name) : (claims.get(name)?.ownName ?? name);
    },
    finish: (item) => withoutOrigin(item),
  });
}

/** The things of a list by their names in the gateway; undefined for a list of URIs. */
function claimsOf(
  part: Part,
  { toolClaims, promptClaims }: View,
): View["toolClaims" | "promptClaims"] | undefined {
  if (part === "tools") return toolClaims;
  return part === "prompts" ? promptClaims : undefined;
}

/** A server that is alone need not say which of its tools a view may call. */
function withoutOrigin<T extends object>(item: T): T {
  const { _meta } = item as Partial<Tool>;
  if (_meta === undefined || !Object.hasOwn(_meta, originKey)) return item;
  const { [originKey]: _, ...meta } = _meta;
  return withMembers(item, { _meta: Object.keys(meta).length === 0 ? undefined : meta } as object);
}
