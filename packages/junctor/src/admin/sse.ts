import type { ServerResponse } from "node:http";
import { sseHeaders } from "@junctor/server/internal";

/** Most bytes that wait for a reader that is behind. */
const maxWaiting = 1024 * 1024;

/** An event stream to one reader. Events for a reader that is too far behind are dropped and counted. */
export class EventSink {
  readonly #response: ServerResponse;
  #dropped = 0;

  /** `onClosed` is called once, when the reader is gone or the stream was ended. */
  constructor(response: ServerResponse, headers: { readonly [name: string]: string }, onClosed: () => void) {
    this.#response = response;
    response.writeHead(200, { ...headers, ...sseHeaders });
    response.flushHeaders();
    response.once("close", onClosed);
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed;
  }

  /** Sends an event whose data is JSON text. Resolves when the reader's side took it. One that `isVital` is never dropped. */
  send(kind: string, json: string, isVital = false): Promise<void> | void {
    if (!this.isOpen) return;
    if (!isVital && this.#response.writableLength > maxWaiting) {
      this.#dropped++;
      return;
    }
    const missed = this.#dropped === 0 ? "" : `event: dropped\ndata: {"events":${this.#dropped}}\n\n`;
    this.#dropped = 0;
    if (this.#response.write(`${missed}event: ${kind}\ndata: ${json}\n\n`)) return;
    return new Promise((resolve) => {
      this.#response.once("drain", resolve);
      this.#response.once("close", resolve);
    });
  }

  keepAlive(): void {
    if (this.isOpen && this.#response.writableLength === 0) this.#response.write(": keepalive\n\n");
  }

  end(): void {
    this.#response.end();
  }
}
