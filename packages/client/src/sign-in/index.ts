export {
  type AuthorizationOptions,
  createClientAuthorizer,
  defaultRedirectUrl,
  type Authorizer,
  createAuthorizer,
  type CredentialEvent,
  type OpenPage,
  renewStored,
} from "./authorizer.ts";
export { parseChallenge, metadataUrlsOf } from "./metadata.ts";
export {
  toClientAuth,
  createMemoryStore,
  type Credential,
  credentialId,
  type CredentialStore,
  toServer,
} from "./credential.ts";
export {
  finishLogin,
  type PendingLogin,
  examineLogin,
  type LoginTerms,
  prepareLogin,
  beginIdentity,
  finishIdentity,
  type IdentityTerms,
  type PendingIdentity,
} from "./login.ts";
export {
  type ApiAnswer,
  createApiFetch,
  parseObject,
  createGuardedFetch,
  type GuardedFetch,
  readBoundedText,
} from "./guarded-fetch.ts";
