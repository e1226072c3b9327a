import type { ServerResponse } from "node:http";
import type { FrameSink, HttpHeaders } from "./reply.ts";

export interface SinkLimits {
  /** Most bytes that wait for one client; one more frame and it is cut. */
  readonly maxBufferBytes: number;
  /** How long a client may take nothing while something waits for it. */
  readonly stallMs: number;
  /** Told why a client was cut. */
  readonly onCut: (reason: string) => void;
}

/** Starts an answer that comes in pieces. */
export function createNodeSink(
  response: ServerResponse,
  status: number,
  headers: HttpHeaders,
  limits: SinkLimits,
): FrameSink {
  response.writeHead(status, headers as Record<string, string>);
  response.flushHeaders();
  const isOpen = (): boolean => !response.destroyed && !response.writableEnded;
  const cut = (reason: string): void => {
    if (!isOpen()) return;
    limits.onCut(reason);
    response.destroy();
  };
  let draining: Promise<void> | undefined;
  return {
    get isOpen() {
      return isOpen();
    },
    write: (text) => {
      if (!isOpen()) return undefined;
      const waiting = response.writableLength;
      // Only a reader that is behind is cut: to one that keeps up, a frame may be as large as it is.
      if (draining !== undefined && waiting + text.length > limits.maxBufferBytes) {
        cut(`the reader is slow: ${waiting} bytes wait for it`);
        return undefined;
      }
      if (response.write(text)) return undefined;
      // One wait for all: a tool that does not await its events must not leave a listener for each.
      draining ??= drained(response, limits.stallMs, cut).then(() => {
        draining = undefined;
      });
      return draining;
    },
    end: () => void response.end(),
    cut,
  };
}

/**
 * Resolves when the client took what waits, or is gone. The timer of the socket starts anew whenever some of it was
 * taken, so a large frame may take its time.
 */
function drained(response: ServerResponse, stallMs: number, cut: (reason: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const stalled = (): void => cut(`the reader took nothing for ${stallMs} ms`);
    const done = (): void => {
      response.setTimeout(0);
      response.off("timeout", stalled);
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.setTimeout(stallMs);
    response.once("timeout", stalled);
    response.once("drain", done);
    response.once("close", done);
  });
}

/** Cuts a reader that takes nothing of an answer that is complete, but did not fit into what the system holds for it. */
export function cutIfStalled(response: ServerResponse, { stallMs, onCut }: SinkLimits): void {
  const { socket } = response;
  if (socket === null || socket.writableLength === 0) return;
  const stalled = (): void => {
    onCut(`the reader took nothing for ${stallMs} ms`);
    response.destroy();
  };
  response.setTimeout(stallMs);
  response.once("timeout", stalled);
  // When it is out, the server's own time-out for sockets in waiting is set again.
  response.once("close", () => response.off("timeout", stalled));
}
