import type { FrameSink } from "./reply.ts";
import { keepAliveFrame } from "./sse.ts";

/** Writes a comment to every open stream now and then, so that no proxy takes a silent one for dead. */
export interface KeepAlive {
  add(sink: FrameSink): void;
  remove(sink: FrameSink): void;
  stop(): void;
}

/** One timer for all streams: thousands of idle ones must cost next to nothing. */
export function createKeepAlive(intervalMs: number): KeepAlive {
  const sinks = new Set<FrameSink>();
  let timer: ReturnType<typeof setInterval> | undefined;
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const tick = (): void => {
    for (const sink of sinks) {
      if (sink.isOpen) void sink.write(keepAliveFrame);
      else sinks.delete(sink);
    }
    if (sinks.size === 0) stop();
  };
  return {
    add: (sink) => {
      sinks.add(sink);
      timer ??= setInterval(tick, intervalMs);
      timer.unref?.();
    },
    remove: (sink) => void sinks.delete(sink),
    stop,
  };
}
