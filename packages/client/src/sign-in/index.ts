export {
  type AuthorizationOptions,
  createClientAuthorizer,
  defaultRedirectUrl,
} from "./authorization-options.ts";
export { type Authorizer, createAuthorizer, type CredentialEvent, type OpenPage } from "./authorizer.ts";
export { parseChallenge } from "./challenge.ts";
export { toClientAuth } from "./client-registration.ts";
export { finishLogin, type PendingLogin } from "./code-flow.ts";
export {
  createMemoryStore,
  type Credential,
  credentialId,
  type CredentialStore,
  toServer,
} from "./credential.ts";
export { parseObject } from "./fetch-json.ts";
export { createGuardedFetch, type GuardedFetch, readBoundedText } from "./guarded-fetch.ts";
export { beginIdentity, finishIdentity, type IdentityTerms, type PendingIdentity } from "./identity.ts";
export { examineLogin, type LoginTerms, prepareLogin } from "./login.ts";
export { metadataUrlsOf } from "./metadata.ts";
export { renewStored } from "./renewal.ts";
