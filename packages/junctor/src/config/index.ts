export { type AccessRule, type IssuerConfig, type KeyConfig, type ProfileConfig } from "./access-rows.ts";
export { listLaunches } from "./as-written.ts";
export {
  hasCertificates,
  isOpen,
  losesMounts,
  placementOf,
  proofInOrOut,
  toCredentials,
} from "./config-access.ts";
export { parseConfigFile, readConfigText, readSmallFile, sourceOfFiles } from "./config-file.ts";
export type { DisabledServer, GatewayConfig, ServerConfig } from "./config.ts";
export { listForNextStart, toAgreedPart, toProcessKey, toUpstreamKey } from "./edits.ts";
export { isSource, mayWantOAuth, type ServerLaunch, type SourceLaunch } from "./entry-rows.ts";
export { createFindings } from "./findings.ts";
export { isAnyAddress, type LockConfig, toRedaction, type TracesConfig } from "./gateway-rows.ts";
export { type JsonMember, type JsonNode, parseJsoncNode } from "./jsonc.ts";
export { readKeychain, writeKeychain } from "./keychain.ts";
export { listSettings, type Setting } from "./origins.ts";
export { parseConfig, parseConfigValue } from "./parse-config.ts";
export { findSamePrefixes, toPrefix } from "./prefix.ts";
export { toTarget } from "./sandbox.ts";
export { createConfigSchema } from "./schema.ts";
export { type OAuthConfig, type ToolRule } from "./server-rows.ts";
export { argumentsIn, type CommandTool, type CommandWord, fillWord } from "./source-rows.ts";
export {
  cacheFolder,
  createPrivateFile,
  readPrivateFile,
  stateFolder,
  writePrivateFile,
  writePrivateFileAsync,
} from "./user-files.ts";
export { joinPath } from "./value-readers.ts";
export { watchConfig } from "./watch-config.ts";
export type { ConfigIssue } from "@junctor/core/errors";
