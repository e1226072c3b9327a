import { randomFillSync } from "node:crypto";
import type { RawJson } from "@junctor/core/json";
import { metaOf } from "@junctor/core/mcp";

/** Where a span is in its trace: the part of a `traceparent` (W3C Trace Context) that counts. */
export interface TraceContext {
  /** 32 and 16 digits, in lower-case hex. */
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Reads a `traceparent`; undefined for text that is none. Versions to come may add parts at the end. */
export function parseTraceparent(text: unknown): TraceContext | undefined {
  if (typeof text !== "string" || text.length < 55 || text.length > maxLength) return undefined;
  const parts = traceparent.exec(text);
  const [, version, traceId = "", spanId = "", flags = "0"] = parts ?? [];
  if (parts === null || version === "ff" || (version === "00" && text.length !== 55)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

const maxLength = 256;
const traceparent = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

export function toTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The context that a request carries in its `_meta`, as OpenTelemetry's conventions for MCP have it. */
export function contextOf(params: RawJson | undefined): TraceContext | undefined {
  // Most requests carry none: to see that, the text is searched, and no member of it is looked at. A key may be spelled with escapes.
  const text = params?.textOf("_meta");
  if (text === undefined || !(text.includes("traceparent") || text.includes("\\"))) return undefined;
  return parseTraceparent(metaOf(params)?.at("traceparent")?.value);
}

/** Random bytes for ids, drawn many at a time: one draw for each id would cost more than all else of a span. */
const pool = new Uint8Array(4096);
let used = pool.length;

export function randomId(bytes: 8 | 16): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = Buffer.from(pool.buffer, used, bytes).toString("hex");
  used += bytes;
  // An id of zeros is not valid (W3C Trace Context).
  return /^0+$/.test(id) ? randomId(bytes) : id;
}
