import { PassThrough } from "node:stream";
import { createDeferred, type Deferred } from "../../src/async/deferred.ts";
import type { Channel } from "../../src/jsonrpc/channel.ts";
import { createStreamChannel, type StreamChannelOptions } from "../../src/transports/stream-channel.ts";
import type { Frame } from "./wire-schema.ts";

/** The far end of a channel, worked by hand: lines as they are written, frames as they come. */
export interface RawWire {
  /** The end under test. */
  readonly channel: Channel;
  /** Every line that came, as text. */
  readonly lines: readonly string[];
  /** Every frame that came; a batch counts as one. */
  readonly frames: readonly Frame[];
  /** Sends a line, or an object as one. */
  send(message: string | object): void;
  /** The first frame that came and fits and was not taken before; waits for it. */
  take(fits?: (frame: Frame) => boolean): Promise<Frame>;
  /** Sends a request and takes its response. */
  request(request: Frame & { readonly id: string | number }): Promise<Frame>;
  /** No more input for the end under test. */
  end(): void;
}

interface Waiter {
  readonly fits: (frame: Frame) => boolean;
  readonly taken: Deferred<Frame>;
}

export function createRawWire(options: StreamChannelOptions = {}): RawWire {
  const input = new PassThrough();
  const output = new PassThrough();
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
  output.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      lines.push(line);
      arrive(JSON.parse(line) as Frame);
    }
  });

  const wire: RawWire = {
    channel: createStreamChannel(input, output, options),
    lines,
    frames,
    send: (message) =>
      void input.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`),
    take: (fits = () => true) => {
      const index = untaken.findIndex(fits);
      const [frame] = index === -1 ? [] : untaken.splice(index, 1);
      if (frame !== undefined) return Promise.resolve(frame);
      const taken = createDeferred<Frame>();
      waiters.add({ fits, taken });
      return taken.promise;
    },
    request: (request) => {
      wire.send({ jsonrpc: "2.0", ...request });
      return wire.take(({ id, method }) => id === request.id && method === undefined);
    },
    end: () => void input.end(),
  };
  return wire;
}
