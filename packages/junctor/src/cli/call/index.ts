export type { Destination, ParsedTarget } from "./destination.ts";
export { toMeasureMs, toPatient } from "./patience.ts";
export { parseDestination, toMs } from "./target.ts";
export { withClient } from "./with-client.ts";
