export { withOwnNames } from "./own-names.ts";
export {
  connectTool,
  createReservations,
  createServerNames,
  isNamedFor,
  toConnectName,
  toPublicName,
  toToolName,
  withConnectName,
} from "./server-names.ts";
