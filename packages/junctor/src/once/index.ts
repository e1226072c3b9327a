export { openCallFile } from "./call-file.ts";
export { type CallLedger, type KeptCall, KeptCalls, type KeptCallsOptions } from "./kept-calls.ts";
export { shareCalls } from "./shared-calls.ts";
export { type IdempotencyOptions, withIdempotency } from "./with-idempotency.ts";
