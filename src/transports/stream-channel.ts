import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock, waitFor } from "../async/clock.ts";
import { RpcError } from "../errors/rpc-error.ts";
import type { Channel, Incoming, Invalid } from "../jsonrpc/channel.ts";
import { encodeMessage } from "../jsonrpc/message.ts";
import { parseMessage, parsePieced } from "../jsonrpc/parse.ts";
import { messageShape } from "../mcp/shape.ts";
import { createLineReader, type InputLine } from "./line-reader.ts";
import { LineWriter } from "./line-writer.ts";

export interface LineLimits {
  /** Longest line accepted, in bytes without its end; 16 MiB by default. */
  readonly maxLineBytes?: number;
  /** Deepest nesting of JSON accepted. */
  readonly maxDepth?: number;
}

export interface StreamChannelOptions extends LineLimits {
  /** Told the bytes of each line that is no message. */
  readonly onStray?: ((line: Uint8Array) => void) | undefined;
  /** How long a reader may take for the last messages when the channel is disposed; what is left is lost then. */
  readonly closeMs?: number;
  readonly clock?: Clock;
}

export const defaultMaxLineBytes: number = 16 * 1024 * 1024;

/** A channel whose two directions can be ended one by one. */
interface StreamChannel extends Channel {
  /** Lets out what was sent, then ends that direction. Takes as long as the reader does. */
  endOutput(): Promise<void>;
}

/** A channel over two byte streams, one JSON message a line. Disposing it ends both. */
export function createStreamChannel(
  readable: Readable,
  writable: Writable,
  options: StreamChannelOptions = {},
): StreamChannel {
  const { closeMs = 1000, clock = systemClock } = options;
  const writer = new LineWriter(writable);
  return {
    send: (message) => writer.write(encodeMessage(message)),
    endOutput: () => writer.end(),
    [Symbol.asyncIterator]: () => receive(readable, options),
    [Symbol.asyncDispose]: async () => {
      await waitFor(writer.end(), { ms: closeMs, clock });
      writable.destroy();
      readable.destroy();
    },
  };
}

function receive(
  readable: Readable,
  limits: StreamChannelOptions,
): AsyncIterableIterator<readonly Incoming[]> {
  const { maxLineBytes = defaultMaxLineBytes, maxDepth, clock = systemClock, onStray } = limits;
  const options = { shape: messageShape, ...(maxDepth === undefined ? {} : { maxDepth }) };
  const parse = (line: InputLine): Incoming => {
    const incoming = toIncoming(line, options);
    if (incoming.kind === "invalid" && line.kind === "line") onStray?.(line.bytes);
    return incoming;
  };
  return createLineReader(readable, { maxLineBytes, parse, clock });
}

function toIncoming(line: InputLine, options: Parameters<typeof parseMessage>[1]): Incoming {
  switch (line.kind) {
    case "line":
      return parseMessage(line.bytes, options);
    case "pieced":
      return parsePieced(line.bytes, options);
    case "too_long":
      return refuseTooLong(line.maxBytes);
  }
}

/** What is received in place of a message that is too long to read. */
export function refuseTooLong(maxBytes: number): Invalid {
  const text = `The message is longer than ${maxBytes} bytes and was skipped`;
  return {
    kind: "invalid",
    id: undefined,
    error: new RpcError("rpc.invalid_request", text),
    isAnswerable: true,
  };
}
