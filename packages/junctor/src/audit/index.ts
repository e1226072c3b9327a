export {
  type AuditFile,
  type AuditFileOptions,
  openAuditFile,
  openSharedAuditFile,
  type SharedAuditFile,
} from "./audit-file.ts";
export { type AuditReport, verifyAudit } from "./verify.ts";
export { findWorkerFiles, toWorkerFile } from "./worker-files.ts";
