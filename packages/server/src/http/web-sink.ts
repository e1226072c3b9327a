import { Buffer } from "node:buffer";
import { type Clock, createDeferred, type Deferred } from "@junctor/core/async";
import type { FrameSink, SinkLimits } from "./reply.ts";

export interface WebSinkOptions extends SinkLimits {
  readonly clock: Clock;
}

/** A body that comes in pieces, and the web's stream it comes by. */
export interface WebSink extends FrameSink {
  readonly body: ReadableStream<Uint8Array>;
  /** Ends it because the client is gone: what waits is dropped. */
  abandon(): void;
}

// The default strategy counts chunks, so a limit on bytes would never be met.
const strategy = new ByteLengthQueuingStrategy({ highWaterMark: 16 * 1024 });

/**
 * Starts a body that comes in pieces. Calls back when it ended, was cut, or its reader cancelled it; `isWhole` says
 * whether it ended as it should.
 */
export function createWebSink(options: WebSinkOptions, onClosed: (isWhole: boolean) => void): WebSink {
  const { maxBufferBytes, stallMs, clock, onCut } = options;
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let isOpen = true;
  let given = 0;
  let room: Deferred<void> | undefined;
  let stopTimer: (() => void) | undefined;

  const waiting = (): number => strategy.highWaterMark - (controller.desiredSize ?? 0);
  const makeRoom = (): void => {
    stopTimer?.();
    stopTimer = undefined;
    room?.resolve();
    room = undefined;
  };
  const close = (isWhole: boolean): void => {
    if (!isOpen) return;
    isOpen = false;
    makeRoom();
    onClosed(isWhole);
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start: (created) => {
        controller = created;
      },
      pull: makeRoom,
      cancel: () => close(false),
    },
    strategy,
  );
  const fail = (reason: string): void => {
    controller.error(new Error(reason));
    close(false);
  };
  const cut = (reason: string): void => {
    if (!isOpen) return;
    onCut(reason);
    fail(reason);
  };
  /** What the reader takes does not show until most of it is taken, so it is measured each time. */
  const watch = (): void => {
    const taken = given - waiting();
    stopTimer = clock.timer(stallMs, () => {
      if (given - waiting() > taken) watch();
      else cut(`the reader took nothing for ${stallMs} ms`);
    });
  };

  return {
    body,
    get isOpen() {
      return isOpen;
    },
    write: (text) => {
      if (!isOpen) return undefined;
      const bytes = Buffer.from(text);
      // Only a reader that is behind is cut: to one that keeps up, a frame may be as large as it is.
      if (room !== undefined && waiting() + bytes.length > maxBufferBytes) {
        cut(`the reader is slow: ${waiting()} bytes wait for it`);
        return undefined;
      }
      given += bytes.length;
      controller.enqueue(bytes);
      if ((controller.desiredSize ?? 0) > 0) return undefined;
      if (room === undefined) {
        room = createDeferred();
        watch();
      }
      return room.promise;
    },
    end: () => {
      if (isOpen) controller.close();
      close(true);
    },
    cut,
    abandon: () => {
      if (isOpen) fail("the client is gone");
    },
  };
}
