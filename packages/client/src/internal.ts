/** What the gateway needs of this package beyond its public names. They may change at any time. */

export { describeCommand, guardVariable, killTree, startChild, toChildEnv } from "./child/index.ts";
export { QuestionHabits, followTask, newAsks } from "./client/index.ts";
export {
  type ApiAnswer,
  beginIdentity,
  createApiFetch,
  createAuthorizer,
  createGuardedFetch,
  createMemoryStore,
  type Credential,
  type CredentialEvent,
  credentialId,
  defaultRedirectUrl,
  examineLogin,
  finishIdentity,
  finishLogin,
  type GuardedFetch,
  type IdentityTerms,
  type LoginTerms,
  metadataUrlsOf,
  parseObject,
  type PendingIdentity,
  type PendingLogin,
  prepareLogin,
  readBoundedText,
  renewStored,
  toClientAuth,
  toServer,
} from "./sign-in/index.ts";
