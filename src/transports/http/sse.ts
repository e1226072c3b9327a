/** One frame of an event stream. `data` is JSON, which has no raw line ends, so it is always a single line. */
export function toFrame(data: string, id?: string): string {
  return id === undefined
    ? `event: message\ndata: ${data}\n\n`
    : `event: message\nid: ${id}\ndata: ${data}\n\n`;
}

/**
 * The first frame of a stream that can be resumed (2025-11-25): an id to come back with, no data, and how long to wait
 * before doing so.
 */
export function toPrimingFrame(id: string, retryMs: number): string {
  return `id: ${id}\nretry: ${retryMs}\ndata: \n\n`;
}

/** Keeps a silent stream alive; readers ignore it. */
export const keepAliveFrame = ": keepalive\n\n";

/** What every event stream says about itself; the last keeps nginx from holding frames back. */
export const sseHeaders = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;
