import { NotFoundError, RpcError, ScopeError, ToolError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import type { Outcome, Task } from "@junctor/core/provider";

/** How a call with a key ended, as it is kept. */
export type KeptEnd =
  | { readonly kind: "outcome"; readonly outcome: Outcome }
  | { readonly kind: "error"; readonly error: Error }
  /** The call was begun, and what became of it is not known. */
  | { readonly kind: "unknown" }
  /** It ended, and its end is no longer kept, or was too large to be. */
  | { readonly kind: "dropped" };

/** Whether a call ended before anything was done, so that its key may be used again. */
export function wasNotSent(end: KeptEnd): boolean {
  if (end.kind === "outcome") return end.outcome.kind === "complete" && end.outcome.refusal !== undefined;
  if (end.kind !== "error") return false;
  const { error } = end;
  return error instanceof NotFoundError || error instanceof ScopeError || deliveryOf(error) === "not_sent";
}

/** The end of a call that threw. */
export function endOfError(error: unknown): KeptEnd {
  if (error instanceof Error && wasNotSent({ kind: "error", error })) return { kind: "error", error };
  if (error instanceof RpcError || error instanceof ToolError) return { kind: "error", error };
  return { kind: "unknown" };
}

function deliveryOf(error: unknown): unknown {
  const { data, delivery } = Object(error) as { readonly data?: unknown; readonly delivery?: unknown };
  // An error that another server answered says in its data what that server knows.
  return (Object(data) as { readonly delivery?: unknown }).delivery ?? delivery;
}

/** About how many bytes an end takes. */
export function sizeOf(end: KeptEnd): number {
  if (end.kind === "error") return end.error.message.length + 200;
  if (end.kind !== "outcome") return 50;
  const { outcome } = end;
  if (outcome.kind === "complete") return outcome.result.byteLength + 200;
  return outcome.kind === "input_required" ? JSON.stringify([outcome.asks, outcome.state]).length + 200 : 400;
}

/** An end as one line of JSON. Results keep their spelling. */
export function formatEnd(end: KeptEnd): string {
  if (end.kind === "error") return JSON.stringify({ kind: "error", error: fromError(end.error) });
  if (end.kind !== "outcome") return JSON.stringify({ kind: end.kind });
  const { outcome } = end;
  const { task, ...rest } = outcome;
  const plain =
    rest.kind === "complete"
      ? { ...rest, result: fromRaw(rest.result) }
      : rest.kind === "failed"
        ? { ...rest, error: fromError(rest.error) }
        : rest;
  const kept = task === undefined ? {} : { task: { ...task, more: task.more && fromRaw(task.more) } };
  return JSON.stringify({ kind: "outcome", outcome: { ...plain, ...kept } });
}

/** Reads what `formatEnd` wrote; anything else is an end that is not known. */
export function parseEnd(text: string): KeptEnd {
  try {
    const { kind, error, outcome } = JSON.parse(text) as WrittenEnd;
    if (kind === "error" && error !== undefined) return { kind, error: toError(error) };
    if (kind === "outcome" && outcome !== undefined) return { kind, outcome: toOutcome(outcome) };
    return kind === "dropped" ? { kind } : { kind: "unknown" };
  } catch {
    return { kind: "unknown" };
  }
}

/** The text of JSON, and whether it came from outside. */
type WrittenRaw = readonly [text: string, isForeign: boolean];

interface WrittenError {
  readonly name: string;
  readonly code: never;
  readonly message: string;
  readonly rpcCode: number;
  readonly data?: unknown;
}

interface WrittenEnd {
  readonly kind: string;
  readonly error?: WrittenError;
  readonly outcome?: {
    readonly kind: Outcome["kind"];
    readonly result?: WrittenRaw;
    readonly error?: WrittenError;
    readonly task?: Omit<Task, "more"> & { readonly more?: WrittenRaw };
  };
}

function fromRaw({ text, isForeign }: RawJson): WrittenRaw {
  return [text, isForeign];
}

function toRaw([text, isForeign]: WrittenRaw): RawJson {
  return RawJson.fromText(text, isForeign);
}

function fromError(error: Error): object {
  const { name, message } = error;
  if (error instanceof RpcError)
    return { name, message, code: error.code, rpcCode: error.rpcCode, data: error.data };
  return { name, message, code: error instanceof ToolError ? error.code : undefined };
}

function toError({ name, code, message, rpcCode, data }: WrittenError): RpcError | ToolError {
  return name === "ToolError"
    ? new ToolError(message, { code })
    : new RpcError(code, message, { rpcCode, data });
}

function toOutcome({ task, result, error, ...rest }: NonNullable<WrittenEnd["outcome"]>): Outcome {
  return {
    ...rest,
    ...(result && { result: toRaw(result) }),
    ...(error && { error: toError(error) }),
    ...(task && { task: { ...task, more: task.more && toRaw(task.more) } }),
  } as Outcome;
}
