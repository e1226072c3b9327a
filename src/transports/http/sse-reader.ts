import { createParser } from "eventsource-parser";
import { RpcError } from "../../errors/rpc-error.ts";

/** One event of a stream. `retryMs` is the wait the server asked for most recently. */
export interface SseEvent {
  readonly event: string | undefined;
  readonly id: string | undefined;
  readonly data: string;
  readonly retryMs: number | undefined;
}

/** Reads an event stream. Comments are left out; an event over the limit ends the reading with an error. */
export async function* readSse(
  body: AsyncIterable<Uint8Array>,
  maxEventBytes: number,
): AsyncGenerator<SseEvent> {
  const decoder = new TextDecoder();
  let ready: SseEvent[] = [];
  let retryMs: number | undefined;
  let sinceEvent = 0;
  const parser = createParser({
    onEvent: ({ event, id, data }) => {
      sinceEvent = 0;
      ready.push({ event, id, data, retryMs });
    },
    onRetry: (ms) => {
      retryMs = ms;
    },
  });
  for await (const chunk of body) {
    sinceEvent += chunk.length;
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (sinceEvent > maxEventBytes)
      throw new RpcError("rpc.internal", `The server sent an event of more than ${maxEventBytes} bytes`);
    const events = ready;
    ready = [];
    yield* events;
  }
}
