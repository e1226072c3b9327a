import { type Awaitable, andThen, fromSignal, recover, settled } from "@junctor/core/async";
import { findIn, type Notice, type Provider } from "@junctor/core/provider";

/** Whichever provider is the current one. */
export interface Latest {
  readonly provider: Provider;
  /** Called when another provider has become the current one: watches, and who listens to changes, go over to it. */
  follow(): void;
}

/**
 * The provider that `current` gives at the moment. A call ends where it began. A watch goes on over a swap; where the new provider
 * refuses it, its caller hears no more, until a later provider lets it watch again.
 */
export function createLatest(current: () => Provider): Latest {
  const followers = new Set<() => void>();
  return {
    provider: {
      list: (part, context) => current().list(part, context),
      call: (operation, context) => current().call(operation, context),
      find: (part, name, context) => findIn(current(), part, name, context),
      watch: (target, context, listener) => {
        const watch = new LatestWatch(
          (hear) => current().watch?.(target, context, hear) ?? (() => {}),
          listener,
        );
        const { cancellation = fromSignal(context.signal) } = context;
        const follow = (): void => watch.goOver();
        const stop = (): void => {
          followers.delete(follow);
          cancellation.offAbort(stop);
          watch.stop();
        };
        followers.add(follow);
        cancellation.onAbort(stop);
        return recover(
          () => andThen(watch.begin(), () => stop),
          (error) => {
            stop();
            throw error;
          },
        );
      },
      offers: (caller) => current().offers(caller),
      onChange: (listener) => {
        let stop = current().onChange?.(listener);
        const follow = (): void => {
          const stopOld = stop;
          stop = current().onChange?.(listener);
          stopOld?.();
        };
        followers.add(follow);
        return () => {
          followers.delete(follow);
          stop?.();
        };
      },
    },
    follow: () => {
      for (const follow of followers) follow();
    },
  };
}

type Listener = (notice: Notice) => void;

/** Most notices that are held while a watch goes over. */
const maxHeld = 256;

/** One watch, at one provider after the other. It begins at the next before it ends at the last: one that callers share never ends. */
class LatestWatch {
  readonly #watch: (listener: Listener) => Awaitable<() => void>;
  readonly #listener: Listener;
  #stopAtLast = (): void => {};
  #isOver = false;
  /** Grows with each beginning: an earlier one that takes longer is of no use any more. */
  #turn = 0;
  /** What was said since a swap. It is told when the new provider has let the caller watch. */
  #held: Notice[] | undefined;

  constructor(watch: (listener: Listener) => Awaitable<() => void>, listener: Listener) {
    this.#watch = watch;
    this.#listener = listener;
  }

  begin(): Awaitable<void> {
    const turn = ++this.#turn;
    const hear = (notice: Notice): void => {
      if (this.#held === undefined) this.#listener(notice);
      else if (this.#held.length < maxHeld) this.#held.push(notice);
    };
    return andThen(settled(this.#watch(hear)), (stop) => {
      if (this.#isOver || turn !== this.#turn) return stop();
      this.#stopAtLast();
      this.#stopAtLast = stop;
      const told = this.#held ?? [];
      this.#held = undefined;
      for (const notice of told) this.#listener(notice);
    });
  }

  goOver(): void {
    this.#held = [];
    const turn = this.#turn + 1;
    void recover(
      () => this.begin(),
      () => {
        if (turn === this.#turn) this.#end();
      },
    );
  }

  stop(): void {
    this.#isOver = true;
    this.#end();
  }

  #end(): void {
    this.#stopAtLast();
    this.#stopAtLast = () => {};
  }
}
