import type { Client } from "@junctor/client";
import { NotFoundError } from "@junctor/core/errors";
import { createCallContext } from "@junctor/core/provider";

/** A resource that is watched. */
interface Watched {
  count: number;
  /** The server was started anew and did not agree again. */
  isRefused: boolean;
  /** Resolves with the function that ends the watch on the server; rejects when the server refused. */
  stop: Promise<() => void>;
}

/** The resources that are watched on one connection: asked for once, however many watch, and again when it was started anew. */
export class Watches {
  /** Called for resources that may have changed while the server was away. Set by the upstream that has the watches now. */
  onMissed: (uri: string) => void = () => {};
  readonly #watched = new Map<string, Watched>();

  get size(): number {
    return this.#watched.size;
  }

  async add(uri: string, client: Client): Promise<() => void> {
    const entry = this.#watched.get(uri) ?? { count: 0, isRefused: false, stop: watch(uri, client) };
    if (entry.isRefused) this.#ask(uri, entry, client);
    this.#watched.set(uri, entry);
    entry.count++;
    try {
      await entry.stop;
    } catch (error) {
      this.#remove(uri, entry);
      throw error;
    }
    let isWatching = true;
    return () => {
      if (isWatching) this.#remove(uri, entry);
      isWatching = false;
    };
  }

  /** The server is another: everything is asked for anew, and everything may have changed. */
  renew(client: Client): void {
    for (const [uri, entry] of this.#watched) {
      this.#ask(uri, entry, client);
      const missed = (): void => this.onMissed(uri);
      entry.stop.then(missed, missed);
    }
  }

  #ask(uri: string, entry: Watched, client: Client): void {
    const stop = watch(uri, client);
    entry.isRefused = false;
    entry.stop = stop;
    // A server that no longer has it says so; a caller that watches it hears of a change and finds out.
    stop.catch(() => {
      if (entry.stop === stop) entry.isRefused = true;
    });
  }

  #remove(uri: string, entry: Watched): void {
    if (--entry.count > 0) return;
    if (this.#watched.get(uri) === entry) this.#watched.delete(uri);
    entry.stop.then(
      (stop) => stop(),
      () => {},
    );
  }
}

async function watch(uri: string, client: Client): Promise<() => void> {
  if (client.resources?.watch === undefined) throw new NotFoundError("resource", uri);
  return client.resources.watch(uri, createCallContext());
}
