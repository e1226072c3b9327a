export { toAgreedPart } from "./agreed-part.ts";
export { listLaunches } from "./as-written.ts";
export { isAnyAddress, placementOf } from "./cluster-settings.ts";
export { hasCertificates, isOpen, losesMounts, proofInOrOut, toCredentials } from "./config-access.ts";
export { parseConfigFile, readConfigText, readSmallFile, sourceOfFiles } from "./config-file.ts";
export { joinPath } from "./config-value.ts";
export type {
  AccessRule,
  ConfigIssue,
  DisabledServer,
  GatewayConfig,
  IssuerConfig,
  KeyConfig,
  LockConfig,
  ServerConfig,
  ServerLaunch,
  ToolRule,
  TracesConfig,
} from "./config.ts";
export { createFindings } from "./findings.ts";
export { mayWantOAuth } from "./http-launch.ts";
export { type JsonMember, type JsonNode, parseJsoncNode } from "./jsonc.ts";
export { readKeychain, writeKeychain } from "./keychain.ts";
export type { OAuthConfig } from "./oauth-config.ts";
export { parseConfig, parseConfigValue } from "./parse-config.ts";
export { findSamePrefixes, toPrefix } from "./prefix.ts";
export type { ProfileConfig } from "./profile-config.ts";
export { toRedaction } from "./redaction.ts";
export { toTarget } from "./sandbox.ts";
export {
  cacheFolder,
  createPrivateFile,
  readPrivateFile,
  stateFolder,
  writePrivateFile,
  writePrivateFileAsync,
} from "./user-files.ts";
export { watchConfig } from "./watch-config.ts";
