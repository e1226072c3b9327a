export { type ParsedTarget, toMeasureMs, toPatient } from "./destination.ts";
export { parseDestination, toMs } from "./target.ts";
export { withClient } from "./with-client.ts";
