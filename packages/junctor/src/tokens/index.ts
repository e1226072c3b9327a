export { acceptTokens, type AcceptTokensOptions, parseBearer } from "./accept-tokens.ts";
export { type IntrospectionOptions, type IssuerOptions, usualAlgorithms } from "./issuer.ts";
export { digestOf, type IssuerHealth, probeIssuers, type RefusedToken, Tokens } from "./tokens.ts";
