import type { Clock } from "@junctor/core/async";
import { RpcError } from "@junctor/core/errors";
import type { RawJson } from "@junctor/core/json";
import { type Questions, isAcceptable, type Question } from "@junctor/core/mcp";
import { type Answers, hasEnded, type TaskProgress, type TaskState } from "@junctor/core/provider";

/** A task as the work in it sees it. */
export interface TaskRun {
  /** Aborted when the task is cancelled or expires. */
  readonly signal: AbortSignal;
  /** Says where the work is, in a few words. */
  status(message: string): void;
  /** Asks the caller, and resolves when each question was answered. The answers have the keys of the questions. */
  ask(asks: Questions): Promise<Answers>;
}

interface OpenQuestion {
  readonly ask: Question;
  take(answer: RawJson): void;
}

/** Most questions of one task: their keys are remembered, because none is used twice. */
const maxQuestions = 1024;
const maxMessageLength = 1024;

interface TaskTerms {
  readonly ttlMs: number;
  readonly pollMs: number;
  readonly clock: Clock;
}

/** One task in memory. Once it has ended, nothing changes it. */
export class MemoryTask implements TaskRun {
  readonly owner: string | undefined;
  /** Whether the work has come to an end, which a cancelled task may be waiting for. */
  isSettled = false;
  readonly questions: TaskQuestions = new TaskQuestions((progress) => this.change(progress));
  readonly #clock: Clock;
  #state: TaskState;
  readonly #stopping = new AbortController();
  readonly #listeners = new Set<(task: TaskState) => void>();

  constructor(owner: string | undefined, { ttlMs, pollMs, clock }: TaskTerms) {
    const now = clock.now();
    const ref = crypto.randomUUID();
    this.owner = owner;
    this.#clock = clock;
    this.#state = { ref, status: "working", createdAt: now, updatedAt: now, ttlMs, pollMs };
  }

  get state(): TaskState {
    return this.#state;
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
    if (hasEnded(this.#state)) return;
    this.questions.close();
    this.change({ status: "cancelled" }, message);
    this.#stopping.abort(new DOMException("The task was cancelled", "AbortError"));
  }

  /** Calls back with each state that comes until the returned function is called. */
  watch(listener: (task: TaskState) => void): () => void {
    const heard = (task: TaskState): void => listener(task);
    this.#listeners.add(heard);
    return () => void this.#listeners.delete(heard);
  }

  change(progress: TaskProgress, message: string | undefined = this.#state.message): void {
    if (hasEnded(this.#state)) return;
    const { ref, createdAt, ttlMs, pollMs } = this.#state;
    // Not before the last change, whatever the clock does.
    const updatedAt = Math.max(this.#state.updatedAt, this.#clock.now());
    this.#state = { ...progress, ref, message, createdAt, updatedAt, ttlMs, pollMs };
    for (const listener of this.#listeners) listener(this.#state);
  }
}

/** The questions of one task. */
class TaskQuestions {
  readonly #changed: (progress: TaskProgress) => void;
  readonly #open = new Map<string, OpenQuestion>();
  readonly #usedKeys = new Set<string>();

  constructor(changed: (progress: TaskProgress) => void) {
    this.#changed = changed;
  }

  /** How far a task is that has not ended. */
  get progress(): TaskProgress {
    if (this.#open.size === 0) return { status: "working" };
    return {
      status: "input_required",
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

  /** No open question is answered any more. */
  close(): void {
    this.#open.clear();
  }

  /** A caller answers each key once, so a question that is asked again needs another. */
  #toNewKey(key: string): string {
    let fresh = key;
    for (let turn = 2; this.#usedKeys.has(fresh); turn++) fresh = `${key}-${turn}`;
    this.#usedKeys.add(fresh);
    return fresh;
  }
}
