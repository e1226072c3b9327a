export {
  findBrokenAnswer,
  findIdAtEnd,
  maxHeadBytes,
  maxTailBytes,
  defineMessageShape,
  parseMessage,
  parsePieced,
  toId,
} from "./parse.ts";
export type { Batch, Channel, Incoming, Invalid } from "./channel.ts";
export { type Handler, type PeerContext, Outbound } from "./requests.ts";
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
export { Peer } from "./peer.ts";
