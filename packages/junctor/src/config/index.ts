export { type AccessRule, type IssuerConfig, type KeyConfig, type ProfileConfig } from "./access-rows.ts";
export { listLaunches } from "./as-written.ts";
export {
  type DisabledServer,
  type GatewayConfig,
  hasCertificates,
  isOpen,
  losesMounts,
  placementOf,
  proofInOrOut,
  type ServerConfig,
  toCredentials,
} from "./config.ts";
export { parseConfigFile, readConfigText, readSmallFile, sourceOfFiles, watchConfig } from "./config-file.ts";
export { listForNextStart, toAgreedPart, toProcessKey, toUpstreamKey } from "./edits.ts";
export { isSource, mayWantOAuth, type ServerLaunch, type SourceLaunch } from "./entry-rows.ts";
export { createFindings } from "./findings.ts";
export { isAnyAddress, type LockConfig, toRedaction, type TracesConfig } from "./gateway-rows.ts";
export { type JsonMember, type JsonNode, parseJsoncNode } from "./jsonc.ts";
export { readKeychain, writeKeychain } from "./expand.ts";
export { listSettings, type Setting } from "./origins.ts";
export { findSamePrefixes, parseConfig, parseConfigValue, toPrefix } from "./parse-config.ts";
export { toTarget } from "./sandbox.ts";
export { createConfigSchema } from "./schema.ts";
export { type OAuthConfig, type ToolRule } from "./server-rows.ts";
export {
  type ApiConfig,
  argumentsIn,
  type CommandTool,
  type CommandWord,
  fillWord,
  type GraphQlConfig,
} from "./source-rows.ts";
export {
  cacheFolder,
  createPrivateFile,
  readPrivateFile,
  stateFolder,
  writePrivateFile,
  writePrivateFileAsync,
} from "./user-files.ts";
export { joinPath } from "./value-readers.ts";
export type { ConfigIssue } from "@junctor/core/errors";
