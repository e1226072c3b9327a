export { recordCredential } from "./credential-audit.ts";
export { createFileStore, type FileStore } from "./file-store.ts";
export { renewByProcess } from "./renew-process.ts";
export {
  createServerAuthorizer,
  type Logins,
  type Renewal,
  sharedOwner,
  toLoginTerms,
} from "./server-authorizer.ts";
