export {
  connectTool,
  createReservations,
  createServerNames,
  isNamedFor,
  toConnectName,
  toPublicName,
  toToolName,
  withConnectName,
  withOwnNames,
} from "./server-names.ts";
