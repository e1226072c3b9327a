export { isLoopback } from "./loopback.ts";
export { connectInMemory, createMemoryPair } from "./memory.ts";
export { Pacer, Pieces, TextTail } from "./line-reader.ts";
export { givenUp, serveChannel, serveOptionKeys, type ServeOptions } from "./serve-channel.ts";
export { createStreamChannel, type LineLimits, type StreamChannelOptions } from "./stream-channel.ts";
