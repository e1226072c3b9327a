export { openCallFile } from "./call-file.ts";
export { KeptCalls, type KeptCallsOptions } from "./kept-calls.ts";
export { SharedCalls } from "./shared-calls.ts";
export { type IdempotencyOptions, withIdempotency } from "./with-idempotency.ts";
