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
export { ServerWords, type Words } from "./server-words.ts";
export { createStderrLog } from "./stderr-log.ts";
