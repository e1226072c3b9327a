import { isDeepStrictEqual } from "node:util";
import type { AccessRule, IssuerConfig } from "./config.ts";

/**
 * A rule that denies or wants a scope takes something away. An `allow` takes away where there was none before, and gives where
 * there was one.
 */
export function narrowRules(
  next: readonly AccessRule[],
  agreed: readonly AccessRule[],
): readonly AccessRule[] {
  const isIn = (rules: readonly AccessRule[]) => (rule: AccessRule) =>
    rules.some((each) => isDeepStrictEqual(each, rule));
  const allowed = agreed.filter(({ kind }) => kind === "allow");
  const kept = next.filter((rule) => rule.kind !== "allow" || allowed.length === 0 || isIn(agreed)(rule));
  const isOpened = allowed.length > 0 && !kept.some(({ kind }) => kind === "allow");
  const missed = agreed.filter((rule) => !isIn(next)(rule) && (rule.kind !== "allow" || isOpened));
  return [...kept, ...missed];
}

/** Issuers may go, and may want more scopes. An issuer that is new, and taking away all of them, would let callers in. */
export function narrowIssuers(
  next: readonly IssuerConfig[],
  agreed: readonly IssuerConfig[],
): readonly IssuerConfig[] {
  const kept = next.filter(({ scopes = [], ...issuer }) =>
    agreed.some(
      ({ scopes: wanted = [], ...known }) =>
        isDeepStrictEqual(issuer, known) && wanted.every((scope) => scopes.includes(scope)),
    ),
  );
  return kept.length === 0 ? agreed : kept;
}
