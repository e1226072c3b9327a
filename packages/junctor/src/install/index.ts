export { installByCommand, uninstallByCommand } from "./by-command.ts";
export {
  fileOf,
  readClientFile,
  readSection,
  sha256Of,
  type TextFile,
  writeClientFile,
} from "./client-file.ts";
export { type ClientPlace, type ClientProgram, clients, clientsAsOf } from "./clients.ts";
export { isOurEntry, type Launcher, ourName } from "./entry-for-client.ts";
export { type OurEntry, toOurEntry } from "./entry-from-client.ts";
export { applyInstall, applyUninstall, type InstallPlan, planInstall, planUninstall } from "./install.ts";
export { spliceJson } from "./json-splice.ts";
export { readLedger } from "./ledger.ts";
export { addServers, assertConfig, type ConfigEdit, readOurServers, whyRefused } from "./our-config.ts";
export { SpliceError } from "./splice-error.ts";
