export { allowTools, createGlob, createGlobs } from "./allow-list.ts";
export { auditLog, type AuditLogOptions, type DescribeCall, type OwnerOf } from "./audit-log.ts";
export {
  Bucket,
  createRateLimit,
  limitRate,
  type LimitRateOptions,
  type Rate,
  type RateLimit,
  type RateRule,
  toRefusal,
  toRule,
  limitTime,
} from "./limits.ts";
export { redact, type RedactOptions, createScrubber, type SecretKind, secrets } from "./redact.ts";
