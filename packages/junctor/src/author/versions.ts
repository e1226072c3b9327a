import type { Items, Part } from "@junctor/core/mcp";
import {
  type Change,
  type Entry,
  findIn,
  type Notice,
  type Operation,
  type Outcome,
  type Provider,
  type Round,
  type Target,
  type CallContext,
  type Wrapper,
} from "@junctor/core/provider";

/** One version of a program that is being written: a server that runs. */
export interface Version extends AsyncDisposable {
  readonly provider: Provider;
}

/** What a version adds to the state of a question: the answers go to the version that asked. */
interface VersionState {
  readonly version: number;
  readonly state: unknown;
}

interface Running {
  readonly number: number;
  readonly version: Version;
  /** Calls that run, and questions that wait for answers. */
  busy: number;
}

interface Watching {
  readonly target: Target;
  readonly context: CallContext;
  readonly listener: (notice: Notice) => void;
  stop: (() => void) | undefined;
}

/** Old versions that still have calls or open questions; beyond that, the oldest is ended. */
const maxOld = 3;

/**
 * A provider that moves from one version of a server to the next without losing a call: running calls end where they began, and calls that
 * come while the next version starts wait for it. A version that does not start changes nothing.
 */
export class Versions implements AsyncDisposable {
  #current: Running;
  #old: Running[] = [];
  #opened: Promise<void> = Promise.resolve();
  readonly #listeners = new Set<(change: Change) => void>();
  readonly #watching = new Set<Watching>();
  readonly provider: Wrapper;

  constructor(first: Version) {
    this.#current = { number: 1, version: first, busy: 0 };
    this.#listen(this.#current);
    this.provider = {
      list: async (part, context) => {
        await this.#opened;
        return this.#current.version.provider.list(part, context);
      },
      call: (operation, context) => this.#call(operation, context),
      find: async <P extends Part>(
        part: P,
        name: string,
        context: CallContext,
      ): Promise<Entry<Items[P]> | undefined> => {
        await this.#opened;
        return findIn(this.#current.version.provider, part, name, context);
      },
      watch: (target, context, listener) => this.#watch(target, context, listener),
      offers: (caller) => this.#current.version.provider.offers(caller),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
    };
  }

  /** Starts the next version. Rejects with the reason when it does not start; the current one goes on then. */
  async replace(start: () => Promise<Version>): Promise<void> {
    const starting = start();
    this.#opened = starting.then(
      () => {},
      () => {},
    );
    const version = await starting;
    const before = this.#current;
    this.#current = { number: before.number + 1, version, busy: 0 };
    this.#listen(this.#current);
    this.#old.push(before);
    await this.#moveWatches();
    for (const part of ["tools", "prompts", "resources", "templates"] as const)
      for (const listener of this.#listeners) listener({ part });
    await this.#endIdle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#current, ...this.#old].map(({ version }) => version[Symbol.asyncDispose]()));
  }

  async #call(operation: Operation, context: CallContext): Promise<Outcome> {
    await this.#opened;
    const asked = operation.round?.state as VersionState | undefined;
    const running =
      [this.#current, ...this.#old].find(({ number }) => number === asked?.version) ?? this.#current;
    if (asked !== undefined && running.number === asked.version) running.busy--;
    running.busy++;
    try {
      const round: Round | undefined = operation.round && { ...operation.round, state: asked?.state };
      const outcome = await running.version.provider.call({ ...operation, round }, context);
      if (outcome.kind !== "input_required") return outcome;
      running.busy++;
      return { ...outcome, state: { version: running.number, state: outcome.state } satisfies VersionState };
    } finally {
      running.busy--;
      if (running !== this.#current) void this.#endIdle();
    }
  }

  /** Ends old versions that nothing waits for. A client may never answer a question, so their number has a limit. */
  async #endIdle(): Promise<void> {
    const tooMany = Math.max(0, this.#old.length - maxOld);
    const ending = this.#old.filter(({ busy }, index) => busy <= 0 || index < tooMany);
    this.#old = this.#old.filter((each) => !ending.includes(each));
    await Promise.all(ending.map(({ version }) => version[Symbol.asyncDispose]()));
  }

  #listen(running: Running): void {
    running.version.provider.onChange?.((change) => {
      if (running === this.#current) for (const listener of this.#listeners) listener(change);
    });
  }

  async #watch(target: Target, context: CallContext, listener: Watching["listener"]): Promise<() => void> {
    await this.#opened;
    const watching: Watching = { target, context, listener, stop: undefined };
    watching.stop = await this.#current.version.provider.watch?.(target, context, listener);
    this.#watching.add(watching);
    return () => {
      this.#watching.delete(watching);
      watching.stop?.();
    };
  }

  /** Watches in this version what was watched in the last one. */
  async #moveWatches(): Promise<void> {
    const { provider } = this.#current.version;
    for (const watching of this.#watching) {
      watching.stop?.();
      const { target, context, listener } = watching;
      // A resource that the new version does not have is not watched any more.
      watching.stop = await Promise.resolve(provider.watch?.(target, context, listener)).catch(
        () => undefined,
      );
    }
  }
}
