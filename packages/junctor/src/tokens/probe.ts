import type { Tokens } from "./tokens.ts";

/** Whether tokens of an issuer can be checked. */
export interface IssuerHealth {
  readonly name: string;
  readonly issuer: string;
  /** Why its tokens will be refused; undefined if they will not. */
  readonly reason: string | undefined;
}

/** Asks each issuer for its metadata and its keys. */
export function probeIssuers(tokens: Tokens | undefined): Promise<readonly IssuerHealth[]> {
  const all = (tokens?.issuers ?? []).map(async (each): Promise<IssuerHealth> => {
    const reason = await each.probe().then(
      () => undefined,
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    return { name: each.alias, issuer: each.options.issuer, reason };
  });
  return Promise.all(all);
}
