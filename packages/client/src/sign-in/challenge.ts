import type { BearerChallenge } from "@junctor/core/errors";

/** Longer headers are not looked at. */
const maxLength = 8192;

/**
 * The Bearer challenge among those of a `WWW-Authenticate` header (RFC 9110, section 11.6.1). A 401 is a challenge also without
 * one; a 403 is none.
 */
export function parseChallenge(
  status: number,
  header: string | readonly string[] | undefined,
): BearerChallenge | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const text = (typeof header === "string" ? header : (header ?? []).join(", ")).slice(0, maxLength);
  const params = bearerParams(text);
  if (params === undefined) return status === 401 ? { status } : undefined;
  const error = params.get("error");
  const resourceMetadata = params.get("resource_metadata");
  const scopes = toScopes(params.get("scope"));
  return {
    status,
    ...(error === undefined ? {} : { error }),
    ...(resourceMetadata === undefined ? {} : { resourceMetadata }),
    ...(scopes.length === 0 ? {} : { scopes }),
  };
}

/** The scopes of a space-separated list, each once. */
export function toScopes(text: string | undefined): readonly string[] {
  return [...new Set((text ?? "").split(" ").filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope)))];
}

/** A scheme, or a parameter of the scheme before it. Both begin with a token. */
const part = /\s*,?\s*([!#$%&'*+.^_`|~\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/gy;

function bearerParams(text: string): ReadonlyMap<string, string> | undefined {
  let params: Map<string, string> | undefined;
  let isBearer = false;
  part.lastIndex = 0;
  for (let found = part.exec(text); found !== null; found = part.exec(text)) {
    const [, name = "", quoted, plain] = found;
    const value = quoted?.replaceAll(/\\(.)/g, "$1") ?? plain;
    if (value === undefined) {
      isBearer = params === undefined && name.toLowerCase() === "bearer";
      if (isBearer) params = new Map();
    } else if (isBearer && !params?.has(name.toLowerCase())) params?.set(name.toLowerCase(), value);
  }
  return params;
}
