import { type Clock, systemClock, Quota } from "@junctor/core/async";
import { NotFoundError, RpcError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { extensionIds, isAcceptable, methods, type Question, type Questions } from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  type Answers,
  type CallContext,
  emptyListing,
  hasTaskEnded,
  type Notice,
  type Offers,
  type Outcome,
  type Provider,
  type TaskOutcome,
} from "@junctor/core/provider";

/** A task as its work sees it. */
export interface TaskRun {
  /** Aborted when the task is cancelled or expires. */
  readonly signal: AbortSignal;
  /** Reports where the work is, in a few words. */
  status(message: string): void;
  /** Asks the caller, and resolves when each question was answered. The answers have the keys of the questions. */
  ask(asks: Questions): Promise<Answers>;
}

export interface MemoryTasksOptions {
  /** How long a task is kept from its creation, running or not; 1 h. */
  readonly ttlMs?: number;
  /** The most tasks of all callers; 16,384. */
  readonly maxTasks?: number;
  /** The most tasks of one caller; 1,024. Callers without a name count as one. */
  readonly maxPerCaller?: number;
  /** The most bytes of results that are kept for all callers; 256 MiB. */
  readonly maxResultBytes?: number;
  /** How long callers are asked to wait between polls; 1 s. */
  readonly pollMs?: number;
  readonly clock?: Clock;
}

const memoryTasksKeys: KeysOf<MemoryTasksOptions> = keys(
  "ttlMs maxTasks maxPerCaller maxResultBytes pollMs clock",
);

/** Provides tasks that run in this process and end with it. Made by {@link createMemoryTasks}. */
export interface MemoryTasks extends Pick<Provider, "list" | "call" | "offers"> {
  readonly watch: NonNullable<Provider["watch"]>;
  /** Starts work as a task of the caller. The task can be polled even before this returns. */
  start(context: CallContext, work: (run: TaskRun) => Promise<RawJson>): TaskOutcome;
  /** Cancels all running tasks, and forgets all tasks. */
  close(): void;
}

/**
 * Creates a store for tasks of this process. At a limit, ended tasks of the same caller are forgotten, the oldest first; a caller whose
 * tasks all run is refused.
 *
 * @example
 * const registry = createRegistry({ tasks: createMemoryTasks({ ttlMs: 600_000 }) });
 */
export function createMemoryTasks(options: MemoryTasksOptions = {}): MemoryTasks {
  assertKnownKeys("createMemoryTasks", options, memoryTasksKeys);
  const kept = new KeptTasks(options);
  return {
    start: ({ caller }, work) => kept.start(caller, work),
    list: () => emptyListing,
    call: ({ method, ref, arguments: args }, context) => {
      const task = kept.find(ref, context);
      if (method === "tasks/get") return task.state;
      if (method === "tasks/update") task.questions.answer(toAnswers(args));
      else task.cancel();
      return done;
    },
    watch: ({ ref }, context, listener) => kept.find(ref, context).watch(listener),
    offers: () => taskOffers,
    close: () => kept.close(),
  };
}

/** The tasks of all callers, and the limits on them. */
class KeptTasks {
  readonly #terms: Required<Pick<MemoryTasksOptions, "ttlMs" | "pollMs" | "clock">>;
  /** In the order of creation, which is the order in which they expire. */
  readonly #tasks = new Map<string, MemoryTask>();
  readonly #slots: Quota<string | undefined>;
  readonly #bytes: Quota<string | undefined>;

  constructor(options: MemoryTasksOptions) {
    const { ttlMs = 3_600_000, pollMs = 1000, clock = systemClock } = options;
    const { maxTasks = 16_384, maxPerCaller = 1024, maxResultBytes = 256 * 1024 * 1024 } = options;
    if (!(Number.isInteger(ttlMs) && ttlMs > 0))
      throw new RangeError(`ttlMs must be a whole number of milliseconds above 0, not ${ttlMs}`);
    this.#terms = { ttlMs, pollMs, clock };
    this.#slots = new Quota({ what: "tasks", total: maxTasks, each: maxPerCaller });
    this.#bytes = new Quota({ what: "bytes of task results", total: maxResultBytes });
  }

  start(caller: string | undefined, work: (run: TaskRun) => Promise<RawJson>): TaskOutcome {
    this.#expire();
    const refused = this.#makeRoom(() => this.#slots.refusal(caller), caller);
    if (refused !== undefined) throw refused;
    this.#slots.add(caller);
    const task = new MemoryTask(caller, this.#terms);
    this.#tasks.set(task.ref, task);
    void this.#run(task, work);
    return task.state;
  }

  /** Throws a `NotFoundError` for a task that is not one of the caller's. */
  find(ref = "", { caller }: CallContext): MemoryTask {
    this.#expire();
    const task = this.#tasks.get(ref);
    if (task === undefined || task.owner !== caller) throw new NotFoundError("task", ref);
    return task;
  }

  close(): void {
    for (const task of this.#tasks.values()) this.#forget(task);
  }

  async #run(task: MemoryTask, work: (run: TaskRun) => Promise<RawJson>): Promise<void> {
    const { clock, ttlMs } = this.#terms;
    const expire = (): void => this.#expire();
    // A timer, because a task that nobody polls must expire too.
    const stopTimer = clock.idleTimer?.(ttlMs, expire) ?? clock.timer(ttlMs, expire);
    try {
      const result = await work(task);
      const size = result.byteLength;
      if (hasTaskEnded(task.state)) return;
      const refused = this.#makeRoom(() => this.#bytes.refusal(task.owner, size), task.owner);
      if (refused !== undefined) throw refused;
      this.#bytes.add(task.owner, size);
      task.change({ kind: "complete", result });
    } catch (error) {
      const hidden = new RpcError("rpc.internal", "Internal error", { cause: error });
      task.change({ kind: "failed", error: error instanceof RpcError ? error : hidden });
    } finally {
      task.isSettled = true;
      stopTimer();
      if (!this.#tasks.has(task.ref)) this.#slots.give(task.owner);
    }
  }

  #expire(): void {
    const { clock, ttlMs } = this.#terms;
    for (const task of this.#tasks.values()) {
      if (clock.now() < task.state.task.createdAt + ttlMs) return;
      this.#forget(task);
    }
  }

  #forget(task: MemoryTask): void {
    if (!this.#tasks.delete(task.ref)) return;
    task.cancel("The task has expired");
    if (task.state.kind === "complete") this.#bytes.give(task.owner, task.state.result.byteLength);
    // Work that ignores its signal still counts.
    if (task.isSettled) this.#slots.give(task.owner);
  }

  /** Forgets ended tasks of one caller until there is room; the refusal when that does not help. */
  #makeRoom(refusal: () => RpcError | undefined, owner: string | undefined): RpcError | undefined {
    let refused = refusal();
    if (refused === undefined) return undefined;
    for (const task of this.#tasks.values()) {
      if (task.owner !== owner || !hasTaskEnded(task.state) || !task.isSettled) continue;
      this.#forget(task);
      refused = refusal();
      if (refused === undefined) return undefined;
    }
    return refused;
  }
}

/** The offers of a provider with tasks. */
export const taskOffers: Offers = {
  serves: (method) => methods.get(method)?.extension === extensionIds.tasks,
  extensions: { [extensionIds.tasks]: {} },
};

/** The outcome of a request that is only acknowledged, such as to cancel a task. */
export const done: Outcome = { kind: "complete", result: RawJson.fromText("{}") };

/** The answers in `tasks/update`. A map made by `fromEntries` has own properties only, whatever the keys are called. */
export function toAnswers(json: RawJson): Answers {
  return Object.fromEntries(Object.keys(json.value as object).map((key) => [key, json.at(key)])) as Answers;
}

interface OpenQuestion {
  readonly ask: Question;
  take(answer: RawJson): void;
}

/** The most questions of one task. Bounded because their keys are remembered: no key is used twice. */
const maxQuestions = 1024;
const maxMessageLength = 1024;

/** One task in memory. Once it has ended, nothing changes it. */
class MemoryTask implements TaskRun {
  readonly owner: string | undefined;
  /** Whether the work has ended, which may be later than the cancellation of the task. */
  isSettled = false;
  readonly questions: TaskQuestions = new TaskQuestions((progress) => this.change(progress));
  readonly #clock: Clock;
  #state: TaskOutcome;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<(notice: Notice) => void>();

  constructor(
    owner: string | undefined,
    { ttlMs, pollMs, clock }: Required<Pick<MemoryTasksOptions, "ttlMs" | "pollMs" | "clock">>,
  ) {
    const now = clock.now();
    const ref = crypto.randomUUID();
    this.owner = owner;
    this.#clock = clock;
    this.#state = { kind: "working", task: { ref, createdAt: now, updatedAt: now, ttlMs, pollMs } };
  }

  get state(): TaskOutcome {
    return this.#state;
  }

  get ref(): string {
    return this.#state.task.ref;
  }

  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  status(message: string): void {
    this.change(this.questions.progress, message.slice(0, maxMessageLength));
  }

  ask(asks: Questions): Promise<Answers> {
    return this.questions.ask(asks, this.signal);
  }

  cancel(message?: string): void {
    if (hasTaskEnded(this.#state)) return;
    this.questions.close();
    this.change({ kind: "cancelled" }, message);
    this.#stopping.abort(new DOMException("The task was cancelled", "AbortError"));
  }

  /** Calls back with each new state until the returned function is called. */
  watch(listener: (notice: Notice) => void): () => void {
    // A function of its own: the same listener may be added twice.
    const own = (notice: Notice): void => listener(notice);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  change(outcome: Outcome, message: string | undefined = this.#state.task.message): void {
    if (hasTaskEnded(this.#state)) return;
    const { task } = this.#state;
    // Never before the last change, even if the clock was set back.
    const updatedAt = Math.max(task.updatedAt, this.#clock.now());
    this.#state = { ...outcome, task: { ...task, message, updatedAt } };
    for (const listener of this.#listeners) listener({ kind: "task", outcome: this.#state });
  }
}

/** The questions of one task. */
class TaskQuestions {
  readonly #changed: (progress: Outcome) => void;
  readonly #open = new Map<string, OpenQuestion>();
  readonly #usedKeys = new Set<string>();

  constructor(changed: (progress: Outcome) => void) {
    this.#changed = changed;
  }

  /** The outcome of a task that has not ended. */
  get progress(): Outcome {
    if (this.#open.size === 0) return { kind: "working" };
    return {
      kind: "input_required",
      asks: Object.fromEntries(Array.from(this.#open, ([key, { ask }]) => [key, ask])),
    };
  }

  ask(asks: Questions, signal: AbortSignal): Promise<Answers> {
    const entries = Object.entries(asks);
    return new Promise((resolve, reject) => {
      const answers: (readonly [string, RawJson])[] = [];
      if (this.#usedKeys.size + entries.length > maxQuestions)
        throw new RpcError("rpc.internal", `The task asked more than ${maxQuestions} questions`);
      signal.throwIfAborted();
      if (entries.length === 0) return resolve({});
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      for (const [key, ask] of entries) {
        const take = (answer: RawJson): void => {
          answers.push([key, answer]);
          if (answers.length === entries.length) resolve(Object.fromEntries(answers));
        };
        this.#open.set(this.#toNewKey(key), { ask, take });
      }
      this.#changed(this.progress);
    });
  }

  /** Takes answers to open questions, all or none of them: one that does not fit its question refuses the others too. */
  answer(answers: Answers): void {
    const given = Object.entries(answers).flatMap(([key, answer]) => {
      const question = this.#open.get(key);
      return question === undefined ? [] : [{ key, answer, question }];
    });
    const wrong = given.find(({ answer, question }) => !isAcceptable(question.ask, answer));
    if (wrong !== undefined) {
      const text = `Invalid params: the answer ${JSON.stringify(wrong.key)} does not fit its question`;
      throw new RpcError("rpc.invalid_params", text);
    }
    if (given.length === 0) return;
    for (const { key } of given) this.#open.delete(key);
    this.#changed(this.progress);
    for (const { answer, question } of given) question.take(answer);
  }

  /** Drops all open questions. */
  close(): void {
    this.#open.clear();
  }

  /** A caller answers each key once, so a question that is asked again needs a new key. */
  #toNewKey(key: string): string {
    let fresh = key;
    for (let turn = 2; this.#usedKeys.has(fresh); turn++) fresh = `${key}-${turn}`;
    this.#usedKeys.add(fresh);
    return fresh;
  }
}
