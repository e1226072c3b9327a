import type { Readable, Writable } from "node:stream";
import { RpcError } from "../errors/rpc-error.ts";
import type { Channel, Incoming } from "../jsonrpc/channel.ts";
import { encodeMessage } from "../jsonrpc/message.ts";
import { parseMessage } from "../jsonrpc/parse.ts";
import { messageShape } from "../mcp/shape.ts";
import { LineWriter } from "./line-writer.ts";
import { LineSplitter, type Line } from "./lines.ts";

export interface LineLimits {
  /** Longest line accepted, in bytes without its end; 16 MiB by default. */
  readonly maxLineBytes?: number;
  /** Deepest nesting of JSON accepted. */
  readonly maxDepth?: number;
}

export const defaultMaxLineBytes: number = 16 * 1024 * 1024;

/** A channel over two byte streams, one JSON message a line. Disposing it ends both. */
export function createStreamChannel(
  readable: Readable,
  writable: Writable,
  limits: LineLimits = {},
): Channel {
  const writer = new LineWriter(writable);
  return {
    send: (message) => writer.write(encodeMessage(message)),
    [Symbol.asyncIterator]: () => receive(readable, limits),
    [Symbol.asyncDispose]: async () => {
      await writer.end();
      readable.destroy();
    },
  };
}

async function* receive(readable: Readable, limits: LineLimits): AsyncGenerator<Incoming> {
  const { maxLineBytes = defaultMaxLineBytes, maxDepth } = limits;
  const splitter = new LineSplitter(maxLineBytes);
  const options = { shape: messageShape, ...(maxDepth === undefined ? {} : { maxDepth }) };
  try {
    for await (const chunk of readable) {
      for (const line of splitter.push(chunk as Uint8Array)) yield toIncoming(line, options);
    }
  } catch (error) {
    // A reset or a stream destroyed under us: the other side is gone, which is the end of input.
    if (!isGone(error)) throw error;
  }
  for (const line of splitter.flush()) yield toIncoming(line, options);
}

function toIncoming(line: Line, options: Parameters<typeof parseMessage>[1]): Incoming {
  if (line.kind === "line") return parseMessage(line.bytes, options);
  const error = new RpcError(
    "rpc.invalid_request",
    `The line is longer than ${line.maxBytes} bytes and was skipped`,
  );
  return { kind: "invalid", id: undefined, error, isAnswerable: true };
}

function isGone(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code;
  return code === "ERR_STREAM_PREMATURE_CLOSE" || code === "ECONNRESET" || code === "EPIPE" || code === "EIO";
}
