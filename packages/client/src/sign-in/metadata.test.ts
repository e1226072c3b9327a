import { describe, expect, test } from "vitest";
import { parseChallenge } from "./metadata.ts";

describe("a challenge", () => {
  test("has the metadata, the scopes and the error of its Bearer part", () => {
    const header =
      'Basic realm="a, Bearer error=x", Bearer realm="r", error="insufficient_scope", scope="a b a", ' +
      'resource_metadata="https://example.com/.well-known/oauth-protected-resource"';
    expect(parseChallenge(403, header)).toEqual({
      status: 403,
      error: "insufficient_scope",
      scopes: ["a", "b"],
      resourceMetadata: "https://example.com/.well-known/oauth-protected-resource",
    });
  });

  test("is read from several headers, with plain and quoted values", () => {
    expect(parseChallenge(401, ["Negotiate", 'bearer error=invalid_token,scope="a\\"b c"'])).toEqual({
      status: 401,
      error: "invalid_token",
      scopes: ["c"],
    });
  });

  test.each([undefined, "", "Basic realm=x", "=,=,", '"'])("is a plain one for a 401 with %j", (header) => {
    expect(parseChallenge(401, header)).toEqual({ status: 401 });
  });

  test("is missing for a 403 without a Bearer part, and for other answers", () => {
    expect(parseChallenge(403, undefined)).toBeUndefined();
    expect(parseChallenge(200, "Bearer")).toBeUndefined();
  });
});
