export { allowTools } from "./allow-list.ts";
export { auditLog, type AuditLogOptions, type DescribeCall, type OwnerOf } from "./audit-log.ts";
export { createGlob, createGlobs } from "./glob.ts";
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
} from "./rate-limit.ts";
export { redact, type RedactOptions } from "./redact.ts";
export { createScrubber } from "./scrub.ts";
export { type SecretKind, secrets } from "./secret-kinds.ts";
export { limitTime } from "./time-limit.ts";
