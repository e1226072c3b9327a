export { type GatewayLog, type GatewayLogLevel, silentLog } from "./log.ts";
export {
  allSecrets,
  createHide,
  createSafeLog,
  hideEverywhere,
  hideInData,
  type HideSecrets,
  isStrongSecret,
  joinOwnSecrets,
  joinSecrets,
  secretMark,
  secretsAt,
} from "./safe-log.ts";
export { createStderrLog, ServerWords, type Words } from "./server-output.ts";
