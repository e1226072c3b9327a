import type { ServerResponse } from "node:http";
import { createDeferred } from "../../../async/deferred.ts";
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
  let draining: Drain | undefined;
  const onTaken = (): void => {
    if (response.writableLength === 0) draining?.end();
  };
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
      if (response.write(text, onTaken)) return undefined;
      // One wait for all: a tool that does not await its events must not leave a listener for each.
      draining ??= drain(response, limits.stallMs, cut, () => (draining = undefined));
      return draining.ended;
    },
    end: () => void response.end(),
    cut,
  };
}

/** A wait for a client to take everything that waits for it. */
interface Drain {
  readonly ended: Promise<void>;
  end(): void;
}

/**
 * Waits until the client took everything, or is gone. The timer of the socket starts anew whenever some of it was taken,
 * so a large frame may take its time. The event "drain" is not enough: in Node 22 a response that was corked while it was
 * written to never emits it, so the sink also ends the wait when a write is out and nothing is left.
 */
function drain(
  response: ServerResponse,
  stallMs: number,
  cut: (reason: string) => void,
  onEnd: () => void,
): Drain {
  const { promise, resolve } = createDeferred<void>();
  const stalled = (): void => cut(`the reader took nothing for ${stallMs} ms`);
  const end = (): void => {
    response.setTimeout(0);
    response.off("timeout", stalled);
    response.off("drain", end);
    response.off("close", end);
    onEnd();
    resolve();
  };
  response.setTimeout(stallMs);
  response.once("timeout", stalled);
  response.once("drain", end);
  response.once("close", end);
  return { ended: promise, end };
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
