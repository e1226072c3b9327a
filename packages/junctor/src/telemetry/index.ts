export { AccessLog, createAccessFile } from "./access-log.ts";
export { type CallRecord, idOf, nameOf, stepsOf } from "./call-record.ts";
export { points, stepMs } from "./charts.ts";
export type { CallChanges } from "./live-calls.ts";
export { expositionType, type Metric } from "./metrics.ts";
export type { Tracer } from "./observed-call.ts";
export { createOtlpExporter, type OtlpExporter } from "./otlp-exporter.ts";
export { createTelemetry, maxRecorded, pageClient, type Telemetry } from "./telemetry.ts";
export type { Sampler } from "./trace.ts";
