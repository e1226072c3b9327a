import type { RpcError } from "../errors/index.ts";
import type { Message, RequestId } from "./message.ts";

/** The traces of an answer in bytes that are not messages. */
export interface BrokenAnswer {
  /** The request it is for, where that is known. */
  readonly id: RequestId | undefined;
}

/** Input that is not a message. */
export interface Invalid {
  readonly kind: "invalid";
  /** The id of the refused request, when it could be read. */
  readonly id: RequestId | undefined;
  readonly error: RpcError;
  /** False for what looks like a response or a notification: those are never answered, however broken. */
  readonly isAnswerable: boolean;
  /** Set when it looks like an answer: no other answer will come for that request. */
  readonly answer?: BrokenAnswer | undefined;
}

/** A JSON array of messages. Only revision 2025-03-26 has them; whether to accept one is the receiver's decision. */
export interface Batch {
  readonly kind: "batch";
  readonly items: readonly (Message | Invalid)[];
}

export type Incoming = Message | Invalid | Batch;

/**
 * A two-way pipe of messages. Iterate it once to receive: each step gives the messages that arrived together,
 * at least one, because a step for each would be expensive. The iteration ends when the other side is gone.
 * Disposing the channel closes both directions and ends the iteration; doing so twice is harmless.
 */
export interface Channel extends AsyncIterable<readonly Incoming[]>, AsyncDisposable {
  /**
   * Sends one message, or several as one batch. Resolves when the transport has taken it, which is the backpressure;
   * order is kept. Rejects with a `ClosedError` once the channel is closed.
   */
  send(message: Message | readonly Message[]): Promise<void>;
}
