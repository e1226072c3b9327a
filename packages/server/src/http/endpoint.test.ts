import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KeepAlive } from "./endpoint.ts";
import type { FrameSink } from "./reply.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function createSink(): FrameSink & { isOpen: boolean; readonly written: string[] } {
  const written: string[] = [];
  return {
    written,
    isOpen: true,
    write: async (text) => void written.push(text),
    end: () => {},
    cut: () => {},
  };
}

test("every open stream gets a comment each interval, and one timer serves them all", () => {
  const keepAlive = new KeepAlive(15_000);
  const sinks = Array.from({ length: 100 }, createSink);
  for (const sink of sinks) keepAlive.add(sink);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(30_000);
  for (const { written } of sinks) expect(written).toEqual([": keepalive\n\n", ": keepalive\n\n"]);
  keepAlive.stop();
});

test("a stream that was removed, or is closed, gets none", () => {
  const keepAlive = new KeepAlive(15_000);
  const [removed, closed] = [createSink(), createSink()];
  const number = keepAlive.add(removed);
  keepAlive.add(closed);
  keepAlive.remove(number);
  closed.isOpen = false;
  vi.advanceTimersByTime(15_000);
  expect([...removed.written, ...closed.written]).toEqual([]);
});

test("without streams no timer runs, and the next stream starts it again", () => {
  const keepAlive = new KeepAlive(15_000);
  const sink = createSink();
  keepAlive.remove(keepAlive.add(sink));
  vi.advanceTimersByTime(15_000);
  expect(vi.getTimerCount()).toBe(0);
  keepAlive.add(sink);
  vi.advanceTimersByTime(15_000);
  expect(sink.written).toHaveLength(1);
  keepAlive.stop();
  expect(vi.getTimerCount()).toBe(0);
});
