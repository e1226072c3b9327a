export { isAccepted } from "./agreements.ts";
export {
  assertProfile,
  type ConfigFile,
  findConfigFile,
  parseFoundConfig,
  readConfigFile,
  usualFiles,
} from "./config-file.ts";
export { checkPlaces } from "./config-place.ts";
