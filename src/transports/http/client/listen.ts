import { createBackoff } from "../../../async/backoff.ts";
import { fromSignal } from "../../../async/cancellation.ts";
import { sleep } from "../../../async/clock.ts";
import { AnswerReader, type TakeMessage } from "./answer-reader.ts";
import type { ReplySink } from "./exchange.ts";
import type { HttpWay } from "./http-way.ts";
import { maxRetryMs } from "./resume.ts";

interface ListenOptions {
  readonly take: TakeMessage;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The stream is open; `mayHaveMissed` says that something may have been missed since it last was. */
  readonly onOpen: (mayHaveMissed: boolean) => void;
  readonly onWarning?: ((text: string) => void) | undefined;
}

/** How long a stream must have lasted to count as working. */
const stableMs = 5000;

/**
 * Keeps a legacy server's stream of announcements open until the signal aborts or the server refuses it for good. A
 * stream that ends at once is asked for again later and later, and never sooner than the server wants.
 */
export async function listenForAnnouncements(way: HttpWay, options: ListenOptions): Promise<void> {
  const { take, maxBytes, signal, onOpen, onWarning } = options;
  const backoff = createBackoff();
  const stop = fromSignal(signal);
  const { session } = way;
  let wasOpen = false;
  let openedAt = 0;
  const reader = new AnswerReader(undefined, maxBytes, take);
  const sink: ReplySink = {
    head: (status, headers) => {
      const mayHaveMissed = wasOpen && reader.lastEventId === undefined;
      reader.head(status, headers);
      if (!reader.isStream) return;
      openedAt = way.clock.now();
      wasOpen = true;
      onOpen(mayHaveMissed);
    },
    chunk: (bytes) => reader.chunk(bytes),
  };
  while (!signal.aborted && way.session === session) {
    try {
      const { lastEventId } = reader;
      const headers = lastEventId === undefined ? [] : ["last-event-id", lastEventId];
      await way.get(sink, { stop, headers });
      if (!reader.isStream && reader.status < 500) return; // Not offered (405), or the session is over.
    } catch (error) {
      if (signal.aborted) return;
      onWarning?.(`The stream of announcements broke: ${String(error)}`);
    }
    if (reader.isStream && way.clock.now() - openedAt >= stableMs) backoff.reset();
    await sleep(Math.max(Math.min(reader.retryMs ?? 0, maxRetryMs), backoff.next()), way.clock, signal).catch(
      () => {},
    );
  }
}
