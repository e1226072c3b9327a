import { PassThrough, type Readable } from "node:stream";
import { createDeferred, type Deferred } from "../../packages/core/src/async/queue.ts";
import {
  createStreamChannel,
  type StreamChannelOptions,
} from "../../packages/core/src/channel/stream-channel.ts";
import type { Channel } from "../../packages/core/src/rpc/channel.ts";
import type { Frame } from "./wire-schema.ts";

/** What came over a stream of lines. */
export interface FrameReader {
  /** Every line that came, as text. */
  readonly lines: readonly string[];
  /** Every frame that came; a batch counts as one. */
  readonly frames: readonly Frame[];
  /** The first frame that came and fits and was not taken before; waits for it. */
  take(fits?: (frame: Frame) => boolean): Promise<Frame>;
}

/** The far end of a channel, worked by hand: lines as they are written, frames as they come. */
export interface RawWire extends FrameReader {
  /** The end under test. */
  readonly channel: Channel;
  /** Sends a line, or an object as one. */
  send(message: string | object): void;
  /** Sends a request and takes its response. */
  request(request: Frame & { readonly id: string | number }): Promise<Frame>;
  /** No more input for the end under test. */
  end(): void;
}

export function createRawWire(options: StreamChannelOptions = {}): RawWire {
  const input = new PassThrough();
  const output = new PassThrough();
  const reader = readFrames(output);
  const send = (message: string | object): void => void input.write(toLine(message));
  return {
    ...reader,
    channel: createStreamChannel(input, output, options),
    send,
    request: (request) => {
      send({ jsonrpc: "2.0", ...request });
      return reader.take((frame) => isAnswer(frame, request.id));
    },
    end: () => void input.end(),
  };
}

/** A message as it is written. */
export function toLine(message: string | object): string {
  return `${typeof message === "string" ? message : JSON.stringify(message)}\n`;
}

/** Whether a frame is the response to the request with this id. */
export function isAnswer({ id, method }: Frame, requestId: string | number): boolean {
  return id === requestId && method === undefined;
}

interface Waiter {
  readonly fits: (frame: Frame) => boolean;
  readonly taken: Deferred<Frame>;
}

/** Reads a stream of lines. What is not JSON fails the test that caused it. */
export function readFrames(readable: Readable): FrameReader {
  const lines: string[] = [];
  const frames: Frame[] = [];
  const untaken: Frame[] = [];
  const waiters = new Set<Waiter>();
  let rest = "";

  const arrive = (frame: Frame): void => {
    frames.push(frame);
    const waiter = [...waiters].find(({ fits }) => fits(frame));
    if (waiter === undefined) return void untaken.push(frame);
    waiters.delete(waiter);
    waiter.taken.resolve(frame);
  };
  readable.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      lines.push(line);
      arrive(JSON.parse(line) as Frame);
    }
  });

  return {
    lines,
    frames,
    take: (fits = () => true) => {
      const index = untaken.findIndex(fits);
      const [frame] = index === -1 ? [] : untaken.splice(index, 1);
      if (frame !== undefined) return Promise.resolve(frame);
      const taken = createDeferred<Frame>();
      waiters.add({ fits, taken });
      return taken.promise;
    },
  };
}
