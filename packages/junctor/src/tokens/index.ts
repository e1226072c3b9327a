export { acceptTokens, type AcceptTokensOptions } from "./accept-tokens.ts";
export { parseBearer } from "./bearer.ts";
export { type IntrospectionOptions, type IssuerOptions, usualAlgorithms } from "./issuer.ts";
export { type IssuerHealth, probeIssuers } from "./probe.ts";
export { digestOf, type RefusedToken, Tokens } from "./tokens.ts";
