import type { QuestionHandlers } from "@junctor/client";
import { RpcError } from "@junctor/core/errors";
import type { Elicited, Root, Sampled, Server, WireContext } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import { text } from "@junctor/core/provider";

/** What a question holds: `message` and `requestedSchema` of a form, `messages` of a sampling request. */
export type QuestionParams = { readonly [key: string]: unknown };

/** Answers of one kind: the same for every question, a list with one for each in turn, or a function of the question. */
export type Script<Answer> =
  | Answer
  | readonly Answer[]
  | ((params: QuestionParams, signal: AbortSignal) => Answer | Promise<Answer>);

/** How a test answers what it is asked. A kind that is left out is not declared as a capability. */
export interface TestAnswers {
  /** For `elicit(…)`. */
  readonly elicit?: Script<Elicited>;
  /** For `elicitUrl(…)`. */
  readonly elicitUrl?: Script<Elicited>;
  /** For `sample(…)`. */
  readonly sample?: Script<Sampled>;
  /** For `listRoots()`. */
  readonly roots?: readonly Root[];
}

/** A question a test was asked, and its answer; the answer is missing when the script had none. */
export type TestQuestion =
  | { readonly kind: "elicit" | "elicitUrl"; readonly params: QuestionParams; readonly answer?: Elicited }
  | { readonly kind: "sample"; readonly params: QuestionParams; readonly answer?: Sampled }
  | { readonly kind: "roots"; readonly params: QuestionParams; readonly answer?: readonly Root[] };

/**
 * The answer of a user who filled the form in.
 *
 * @example
 * const app = await connectForTest(registry, { answers: { elicit: accepted({ name: "Ada" }) } });
 */
export function accepted(content: { readonly [field: string]: unknown } = {}): Elicited {
  return { action: "accept", content };
}

/**
 * The answer of a user who said no.
 *
 * @example
 * const app = await connectForTest(registry, { answers: { elicit: [accepted({ size: 3 }), declined()] } });
 */
export function declined(): Elicited {
  return { action: "decline" };
}

/**
 * The answer of a user who closed the form without a word.
 *
 * @example
 * const app = await connectForTest(registry, { answers: { elicit: cancelled() } });
 */
export function cancelled(): Elicited {
  return { action: "cancel" };
}

/**
 * The answer of a model that wrote this text.
 *
 * @example
 * const app = await connectForTest(registry, { answers: { sample: sampled("A haiku about tests") } });
 */
export function sampled(written: string, more: Partial<Sampled> = {}): Sampled {
  return { role: "assistant", content: text(written), model: "test-model", stopReason: "endTurn", ...more };
}

/** Handlers that answer by the script and report every question. A question without an answer fails the call. */
export function toHandlers(
  { elicit, elicitUrl, sample, roots }: TestAnswers,
  onQuestion: (question: TestQuestion) => void,
): QuestionHandlers {
  const play = <Answer extends object>(
    kind: Exclude<TestQuestion["kind"], "roots">,
    script: Script<Answer> | undefined,
  ): ((params: QuestionParams, signal: AbortSignal) => Promise<Answer>) | undefined => {
    if (script === undefined) return undefined;
    let turn = 0;
    return async (params, signal) => {
      const answer = await answerOf(script, turn++, params, signal);
      onQuestion({ kind, params, ...(answer === undefined ? {} : { answer }) } as TestQuestion);
      if (answer !== undefined) return answer;
      throw createUnanswered(describeMissing(kind, script, params));
    };
  };
  return defined({
    elicit: play("elicit", elicit),
    elicitUrl: play("elicitUrl", elicitUrl),
    sample: play("sample", sample),
    roots:
      roots === undefined
        ? undefined
        : () => {
            onQuestion({ kind: "roots", params: {}, answer: roots });
            return roots;
          },
  });
}

async function answerOf<Answer extends object>(
  script: Script<Answer>,
  turn: number,
  params: QuestionParams,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  if (typeof script === "function") return script(params, signal);
  return Array.isArray(script) ? (script as readonly Answer[])[turn] : (script as Answer);
}

function describeMissing(kind: string, script: unknown, params: QuestionParams): string {
  const asked = JSON.stringify(params);
  if (!Array.isArray(script)) return `The function for ${kind} gave no answer to ${asked}`;
  const count = script.length === 1 ? "1 answer" : `${script.length} answers`;
  return `The script has ${count} for ${kind}, but was asked once more: ${asked}`;
}

/** Marks the error of a question without an answer, on its way through the protocol. */
const unanswered = { unanswered: true };

/** The error for a question that the script of a test has no answer for. */
function createUnanswered(message: string): RpcError {
  return new RpcError("rpc.internal", message, { data: unanswered });
}

/**
 * The same server, except that a request fails when a question it asked had no answer. A legacy server would report the error to the tool
 * and go on, and the test would never see it. A modern client fails the call by itself.
 */
export function failUnanswered(server: Server): Server {
  return {
    serves: server.serves,
    parseErrorCode: server.parseErrorCode,
    handle: async (request, context) => {
      const missed: RpcError[] = [];
      try {
        const result = await server.handle(
          request,
          watch(context, (error) => missed.push(error)),
        );
        if (missed[0] === undefined) return result;
      } catch (error) {
        throw missed[0] ?? error;
      }
      throw missed[0];
    },
    attach: (session, announce, caller) => server.attach(session, announce, caller),
    onRevoked: (listener) => server.onRevoked?.(listener) ?? (() => {}),
    drain: () => server.drain(),
  };
}

/** The context of one request on a channel, which reports each question of that request that had no answer. */
function watch(context: WireContext, onUnanswered: (error: RpcError) => void): WireContext {
  return {
    ...context,
    notify: (method, params) => context.notify(method, params),
    ask: async (...question) => {
      if (context.ask === undefined)
        throw new RpcError("rpc.method_not_found", "The client takes no questions");
      try {
        return await context.ask(...question);
      } catch (error) {
        if (isUnanswered(error)) onUnanswered(error);
        throw error;
      }
    },
  };
}

function isUnanswered(error: unknown): error is RpcError {
  if (!(error instanceof RpcError) || typeof error.data !== "object" || error.data === null) return false;
  return (error.data as Partial<typeof unanswered>).unanswered === true;
}
