import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import { assertValidFrame, type Frame, type Sender } from "./wire-schema.ts";

/** One frame that crossed the wire, in the order it crossed. */
export interface TappedFrame {
  readonly sender: Sender;
  readonly frame: Frame;
}

/** Listens in on one channel of newline-framed messages and holds what the server says to the published schema. */
export interface WireTap {
  readonly frames: readonly TappedFrame[];
  /** Takes bytes of the server as they come, split anywhere. */
  hear(bytes: Uint8Array): void;
  /** Takes a message of the client. */
  sent(message: unknown): void;
  /** Throws if a line that was not judged yet is not a message, or one its revision does not allow. */
  assertValid(): void;
}

export function createWireTap(revision: Revision): WireTap {
  const frames: TappedFrame[] = [];
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let judged = 0;

  return {
    frames,
    hear: (bytes) => {
      const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) frames.push({ sender: "server", frame: parse(line) });
    },
    sent: (message) => void frames.push({ sender: "client", frame: message as Frame }),
    assertValid: () => {
      while (judged < frames.length) {
        const { sender, frame } = frames[judged++] as TappedFrame;
        if (sender === "client") continue;
        for (const single of Array.isArray(frame) ? (frame as readonly Frame[]) : [frame]) {
          assertValidFrame("server", revision, requestOf(single, frames.slice(0, judged)), single);
        }
      }
    },
  };
}

/** A line that is not JSON stays text, which no schema lets through. */
function parse(line: string): Frame {
  try {
    return JSON.parse(line) as Frame;
  } catch {
    return line as unknown as Frame;
  }
}

/** The client's request a response of the server answers. */
function requestOf({ id, method }: Frame, earlier: readonly TappedFrame[]): Frame | undefined {
  if (method !== undefined || id === undefined) return undefined;
  const isAsked = ({ sender, frame }: TappedFrame): boolean =>
    sender === "client" && frame.method !== undefined && frame.id === id;
  return earlier.find(isAsked)?.frame;
}
