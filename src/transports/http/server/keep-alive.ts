import { Numbered } from "../../../async/numbered.ts";
import { keepAliveFrame } from "../sse.ts";
import type { FrameSink } from "./reply.ts";

/** Writes a comment to every open stream now and then, so that no proxy takes a silent one for dead. */
export interface KeepAlive {
  /** Takes a stream in, and says its number, by which it is let go. */
  add(sink: FrameSink): number;
  remove(number: number): void;
  stop(): void;
}

/** One timer for all streams: thousands of idle ones must cost next to nothing. */
export function createKeepAlive(intervalMs: number): KeepAlive {
  const sinks = new Numbered<FrameSink>();
  let timer: ReturnType<typeof setInterval> | undefined;
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const tick = (): void => {
    for (const sink of sinks.values()) if (sink.isOpen) void sink.write(keepAliveFrame);
    if (sinks.size === 0) stop();
  };
  return {
    add: (sink) => {
      timer ??= setInterval(tick, intervalMs);
      timer.unref?.();
      return sinks.add(sink);
    },
    remove: (number) => void sinks.delete(number),
    stop,
  };
}
