import type { Client } from "@junctor/client";
import { NotFoundError } from "@junctor/core/errors";
import { createCallContext, type Notice } from "@junctor/core/provider";

type Listener = (notice: Notice) => void;

/** A resource that is watched. */
interface Watched {
  readonly listeners: Set<Listener>;
  /** The server was started anew and did not agree again. */
  isRefused: boolean;
  /** Resolves with the function that ends the watch on the server; rejects when the server refused. */
  stop: Promise<() => void>;
}

/** The resources that are watched on one connection: asked for once, however many watch, and again when it was started anew. */
export class Watches {
  readonly #watched = new Map<string, Watched>();

  get size(): number {
    return this.#watched.size;
  }

  /** Watches a resource, and what lies below it, until the returned function is called. */
  async add(uri: string, client: Client, listener: Listener = () => {}): Promise<() => void> {
    const entry = this.#watched.get(uri) ?? begin(uri, client);
    if (entry.isRefused) this.#ask(uri, entry, client);
    this.#watched.set(uri, entry);
    // A function of its own for each watch: one listener may watch twice.
    const hear: Listener = (notice) => listener(notice);
    entry.listeners.add(hear);
    const stop = (): void => {
      if (entry.listeners.delete(hear)) this.#leave(uri, entry);
    };
    try {
      await entry.stop;
    } catch (error) {
      stop();
      throw error;
    }
    return stop;
  }

  /** The server is another: everything is asked for anew, and everything may have changed. */
  renew(client: Client): void {
    for (const [uri, entry] of this.#watched) {
      this.#ask(uri, entry, client);
      const missed = (): void => tell(entry, { kind: "updated", uri });
      entry.stop.then(missed, missed);
    }
  }

  #ask(uri: string, entry: Watched, client: Client): void {
    const stop = watch(uri, client, entry);
    entry.isRefused = false;
    entry.stop = stop;
    // A server that no longer has it says so; a caller that watches it hears of a change and finds out.
    stop.catch(() => {
      if (entry.stop === stop) entry.isRefused = true;
    });
  }

  #leave(uri: string, entry: Watched): void {
    if (entry.listeners.size > 0) return;
    if (this.#watched.get(uri) === entry) this.#watched.delete(uri);
    entry.stop.then(
      (stop) => stop(),
      () => {},
    );
  }
}

function begin(uri: string, client: Client): Watched {
  const listeners = new Set<Listener>();
  return { listeners, isRefused: false, stop: watch(uri, client, { listeners }) };
}

async function watch(uri: string, client: Client, entry: Pick<Watched, "listeners">): Promise<() => void> {
  if (client.watch === undefined) throw new NotFoundError("resource", uri);
  const target = { part: "resources", name: uri, ref: undefined } as const;
  return client.watch(target, createCallContext(), (notice) => tell(entry, notice));
}

function tell({ listeners }: Pick<Watched, "listeners">, notice: Notice): void {
  for (const listener of listeners) listener(notice);
}
