import { type AuthRefusal, toChallenge } from "@junctor/server/internal";
import type { ProtectedResource, Resources } from "./resource.ts";

/** How requests that are not let in are answered (RFC 6750, section 3.1). */
export interface TokenAnswers {
  /** To a request without a token. */
  challenge(path: string): AuthRefusal;
  /** To a request whose header cannot be read. */
  malformed(path: string): AuthRefusal;
  /** To a token that is no good. */
  invalid(reason: string, resource: ProtectedResource): AuthRefusal;
  /** To a token that lacks one of the scopes that every token must have. */
  insufficient(scopes: readonly string[], resource: ProtectedResource): AuthRefusal;
  /** The challenge for a caller that lacks scopes for what it wants to do. */
  challengeFor(scopes: readonly string[], path: string): string;
}

/** `scopes` are those that some issuer wants of every token. */
export function createTokenAnswers(resources: Resources, scopes: readonly string[]): TokenAnswers {
  return {
    challenge: (path) => ({
      refused: 401,
      text: "Sign in: send an access token in the header Authorization: Bearer TOKEN",
      challenge: toChallenge({ metadataUrl: resources.at(path).metadataUrl, scopes }),
    }),
    malformed: (path) => {
      const { metadataUrl } = resources.at(path);
      return {
        refused: 400,
        text: "Send one access token in the header Authorization: Bearer TOKEN",
        challenge: toChallenge({ error: "invalid_request", metadataUrl, scopes }),
      };
    },
    invalid: (reason, { metadataUrl }) => ({
      refused: 401,
      text: `The token is refused: ${reason}`,
      challenge: toChallenge({ error: "invalid_token", description: reason, metadataUrl, scopes }),
    }),
    insufficient: (needed, { metadataUrl }) => ({
      refused: 403,
      text: `The token is refused: it lacks one of the scopes ${needed.join(" ")}`,
      challenge: toChallenge({ error: "insufficient_scope", metadataUrl, scopes: needed }),
    }),
    challengeFor: (needed, path) => {
      const { metadataUrl } = resources.at(path);
      return toChallenge({ error: "insufficient_scope", metadataUrl, scopes: needed });
    },
  };
}
