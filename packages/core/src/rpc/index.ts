export { findBrokenAnswer, findIdAtEnd, maxHeadBytes, maxTailBytes } from "./broken-answer.ts";
export type { Batch, Channel, Incoming, Invalid } from "./channel.ts";
export type { Handler, PeerContext } from "./inbound.ts";
export {
  encodeMessage,
  type ErrorResponse,
  type Message,
  type Notification,
  type Request,
  type RequestId,
  type Response,
  toErrorBody,
  toRequestId,
} from "./message.ts";
export { Outbound } from "./outbound.ts";
export { defineMessageShape, parseMessage, parsePieced, toId } from "./parse.ts";
export { Peer } from "./peer.ts";
