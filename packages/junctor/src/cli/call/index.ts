export { toMeasureMs, toPatient } from "./patience.ts";
export { toMs } from "./target.ts";
