export { createFileStore, type FileStore } from "./file-store.ts";
export {
  createServerAuthorizer,
  type Logins,
  recordCredential,
  type Renewal,
  renewByProcess,
  sharedOwner,
  toLoginTerms,
} from "./server-authorizer.ts";
