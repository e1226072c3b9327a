export {
  assertProfile,
  checkPlaces,
  type ConfigFile,
  findConfigFile,
  isAccepted,
  parseFoundConfig,
  readConfigFile,
  usualFiles,
} from "./config-file.ts";
