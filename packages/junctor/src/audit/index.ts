export {
  type AuditFile,
  type AuditFileOptions,
  findWorkerFiles,
  openAuditFile,
  openSharedAuditFile,
  type SharedAuditFile,
  toWorkerFile,
} from "./audit-file.ts";
export { type AuditReport, verifyAudit } from "./verify.ts";
