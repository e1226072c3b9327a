import { RpcError } from "@junctor/core/errors";
import type { Questions } from "@junctor/core/mcp";
import { hasTaskEnded, type TaskOutcome } from "@junctor/core/provider";

/** How a task is followed. */
interface Following {
  /** Looks at the task. */
  get(): Promise<TaskOutcome>;
  /** Waits before the next look; rejects when the task is not followed any more. */
  wait(ms: number): Promise<void>;
  /** Whether it was given up, so that a look that failed is not made again. */
  isGivenUp(): boolean;
  /** Called for each state. */
  onState(outcome: TaskOutcome): void;
  /** The keys of questions that were answered: a key is answered once, whatever the server asks. */
  readonly answered: Set<string>;
  /** Answers questions; false to leave the task with them. They are left open where this is missing. */
  answer?(asks: Questions): Promise<boolean>;
}

/** The first look at a task; each later one waits twice as long, up to what the server wants. */
const firstPollMs = 200;
const maxPollMs = 60_000;
/** How far the waits grow where the server says nothing. */
const usualPollMs = 10_000;
/** Looks that may fail one after the other: a server may be restarting. */
const maxFailures = 5;
/** Most questions of one task. */
const maxQuestions = 1024;

/** Looks at a task until it has ended, or was left with questions, and gives its last state. */
export async function followTask(first: TaskOutcome, following: Following): Promise<TaskOutcome> {
  let outcome = first;
  for (let waitMs = firstPollMs; ; waitMs = Math.min(waitMs * 2, toPollMs(outcome.task.pollMs))) {
    following.onState(outcome);
    if (hasTaskEnded(outcome)) return outcome;
    const answered = outcome.kind === "input_required" ? await answerNew(outcome.asks, following) : undefined;
    if (answered === false) return outcome;
    if (answered === true) waitMs = firstPollMs;
    outcome = await look(answered === true ? 0 : waitMs, following);
  }
}

/** Whether the new questions were answered; undefined when there are none, or none is answered here. */
async function answerNew(asks: Questions, { answered, answer }: Following): Promise<boolean | undefined> {
  const fresh = newAsks(asks, answered);
  const keys = Object.keys(fresh);
  if (keys.length === 0 || answer === undefined) return undefined;
  if (answered.size + keys.length > maxQuestions)
    throw new RpcError("rpc.other", `The task asked more than ${maxQuestions} questions; giving up`);
  const isAnswered = await answer(fresh);
  if (isAnswered) for (const key of keys) answered.add(key);
  return isAnswered;
}

/** The questions that were not answered yet. */
export function newAsks(asks: Questions, answered: ReadonlySet<string>): Questions {
  return Object.fromEntries(Object.entries(asks).filter(([key]) => !answered.has(key)));
}

/** Looks again after a while. A failure that says nothing of the task is met by looking once more. */
async function look(waitMs: number, { get, wait, isGivenUp }: Following): Promise<TaskOutcome> {
  for (let failures = 1; ; failures++) {
    await wait(waitMs);
    try {
      return await get();
    } catch (error) {
      if (error instanceof RpcError || isGivenUp() || failures >= maxFailures) throw error;
    }
  }
}

function toPollMs(wanted: number | undefined): number {
  return Math.min(Math.max(wanted ?? usualPollMs, firstPollMs), maxPollMs);
}
