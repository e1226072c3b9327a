export {
  applyInstall,
  applyUninstall,
  installByCommand,
  type InstallPlan,
  planInstall,
  planUninstall,
  uninstallByCommand,
} from "./install.ts";
export { fileOf, readClientFile, readSection, sha256Of, type TextFile } from "./client-file.ts";
export { type ClientPlace, type ClientProgram, clients, clientsAsOf } from "./clients.ts";
export { isOurEntry, type Launcher, type OurEntry, ourName, toOurEntry } from "./client-entry.ts";
export { SpliceError } from "./json-splice.ts";
export { readLedger } from "./ledger.ts";
export {
  addServers,
  type ConfigEdit,
  editServers,
  readOurServers,
  whyRefused,
  writeOurConfig,
} from "./our-config.ts";
