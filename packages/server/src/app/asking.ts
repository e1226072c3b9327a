import { type Awaitable, createDeferred, type Deferred, isPromise } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import {
  elicit,
  type Elicited,
  elicitUrl,
  listRoots,
  type Question,
  type Root,
  sample,
  type Sampled,
} from "@junctor/core/mcp";
import { suggest } from "@junctor/core/options";
import {
  type AnswerReader,
  type InputRequired,
  inputRequired,
  isInputRequired,
} from "@junctor/core/provider";
import { describeIssues, describeValue } from "@junctor/core/schema";
import {
  type EventStream,
  type HandlerResult,
  type InferredOutput,
  isEventStream,
  type SchemaSource,
  type ToolEvent,
  toSchema,
} from "../registry/index.ts";

/** What a handler may ask and do while it runs, whatever the era of its caller. */
export interface Asking {
  /**
   * Asks the user to fill in a form, and resolves with the answer, checked by the schema. When the answer is there, the handler runs
   * again from its start: put work before a question that must not happen twice into `once`.
   *
   * @throws ToolError `tool.declined` when the user says no or closes the form
   * @example
   * const { sure } = await ask("Delete all of it?", z.object({ sure: z.boolean() }));
   */
  ask<const Form extends SchemaSource>(
    message: string,
    form: Form & FlatForm<Form>,
  ): Promise<InferredOutput<Form>>;
  /** Asks the user to visit a page; resolves when the user agreed to open it. Throws like `ask`. */
  visit(message: string, url: string): Promise<void>;
  /** Asks the model of the caller to write something. */
  sample(params: Parameters<typeof sample>[0]): Promise<Sampled>;
  /** Asks which folders the user is working in. */
  roots(): Promise<readonly Root[]>;
  /**
   * Does a piece of work once, however often questions make the handler run again. Its result is kept with the caller, sealed, so it must
   * be JSON; failed work is done again. Each name may be used once in a handler.
   *
   * @example
   * const order = await once("order", () => shop.order(id));
   */
  once<Result>(name: string, work: () => Awaitable<Result>): Promise<Result>;
}

/** Accepts the schema of a flat object. For any other it is a sentence, which the compiler shows as the error. */
export type FlatForm<Form> = [NotFlat<InferredOutput<Form>>] extends [never]
  ? unknown
  : `A form is flat: ${NotFlat<InferredOutput<Form>>} must be a text, a number, a boolean or a choice`;

type NotFlat<Answer> = {
  [Field in keyof Answer & string]-?: unknown extends Answer[Field]
    ? never
    : Answer[Field] extends string | number | boolean | readonly string[] | null | undefined
      ? never
      : Field;
}[keyof Answer & string];

/** The answers and the state of earlier rounds. */
interface Earlier {
  readonly answers: AnswerReader;
  readonly state: unknown;
}

/** The results of `once` by name, each in an array that is empty for undefined, which JSON lacks. */
type Kept = { readonly [name: string]: readonly unknown[] };

/**
 * Runs a handler up to the first question without an answer, which ends the round, or to its end. A handler that waits for an answer
 * stays suspended: an error thrown into it could be caught and taken for a refusal.
 */
export function runAsking(earlier: Earlier, handle: (asking: Asking) => unknown): unknown {
  const round = new AskingRound(earlier);
  const returned = handle(round.asking);
  if (isEventStream(returned)) return streamAsking(returned, round.ended.promise);
  return isPromise(returned) ? Promise.race([returned, round.ended.promise]) : returned;
}

async function* streamAsking(
  events: EventStream,
  ended: Promise<InputRequired>,
): AsyncGenerator<ToolEvent, HandlerResult> {
  let isAsking = false;
  try {
    for (;;) {
      const step = await Promise.race([events.next(), ended]);
      isAsking = isInputRequired(step);
      if (isInputRequired(step)) return step;
      if (step.done === true) return step.value;
      yield step.value;
    }
  } finally {
    // A generator that waits for an answer would never return.
    if (!isAsking) await events.return(undefined);
  }
}

/** One run of a handler. */
class AskingRound {
  readonly #answers: AnswerReader;
  readonly #kept: Map<string, readonly unknown[]>;
  readonly #works = new Map<string, Promise<unknown>>();
  readonly #asks: { [key: string]: Question } = {};
  #asked = 0;
  #isEnding = false;
  readonly ended: Deferred<InputRequired> = createDeferred();
  readonly asking: Asking;

  constructor({ answers, state }: Earlier) {
    this.#answers = answers;
    this.#kept = new Map(Object.entries((state as { readonly once?: Kept } | undefined)?.once ?? {}));
    this.asking = {
      ask: (message, form) => this.#ask(message, form) as Promise<never>,
      visit: async (message, url) => {
        const answer = await this.#answer(elicitUrl(message, url), (key) => answers.elicited(key));
        if (answer.action !== "accept") throw declined(message, answer);
      },
      sample: (params) => this.#answer(sample(params), (key) => answers.sampled(key)),
      roots: () => this.#answer(listRoots(), (key) => answers.roots(key)),
      once: (name, work) => this.#once(name, work),
    };
  }

  async #ask(message: string, form: SchemaSource): Promise<unknown> {
    const schema = toSchema(form, { what: `ask(${JSON.stringify(message)}, schema)` });
    const question = elicit(message, schema.json as { readonly type: "object"; readonly properties: object });
    const answer = await this.#answer(question, (key) => this.#answers.elicited(key));
    if (answer.action !== "accept") throw declined(message, answer);
    const checked = await schema.check(answer.content);
    if (checked.ok)
      return refuseUnknown(checked.value, Object.keys(schema.json["properties"] ?? {}), message);
    throw new ToolError(
      `The answer to ${JSON.stringify(message)} does not fit: ${describeIssues(checked.issues)}`,
    );
  }

  /** The answer to a question. Its key contains a hash of the question, so that the answer to another one is not taken for it. */
  #answer<Answer>(question: Question, read: (key: string) => Answer | undefined): Promise<Answer> {
    const key = `${++this.#asked}-${fingerprint(JSON.stringify(question))}`;
    const answer = read(key);
    if (answer !== undefined) return Promise.resolve(answer);
    this.#asks[key] = question;
    void this.#end();
    return new Promise(() => {});
  }

  /** Ends the round with all its questions, when the work of `once` is done. */
  async #end(): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    // Questions that are asked at the same time belong to one round.
    await Promise.resolve();
    let seen = -1;
    while (seen !== this.#works.size) {
      seen = this.#works.size;
      await Promise.allSettled(this.#works.values());
    }
    const state = this.#kept.size === 0 ? undefined : { once: Object.fromEntries(this.#kept) };
    this.ended.resolve(inputRequired(this.#asks, state));
  }

  async #once<Result>(name: string, work: () => Awaitable<Result>): Promise<Result> {
    if (typeof name !== "string" || typeof work !== "function")
      throw new TypeError('Write once("charge", () => charge(card))');
    let running = this.#works.get(name);
    if (running === undefined) {
      const kept = this.#kept.get(name);
      running = kept === undefined ? this.#work(name, work) : Promise.resolve(kept[0]);
      this.#works.set(name, running);
    }
    return running as Promise<Result>;
  }

  async #work(name: string, work: () => unknown): Promise<unknown> {
    const value = await work();
    const json: string | undefined = JSON.stringify(value);
    if (json === undefined && value !== undefined)
      throw new TypeError(`once(${JSON.stringify(name)}): ${describeValue(value)} is not JSON`);
    const kept: readonly unknown[] = json === undefined ? [] : [JSON.parse(json)];
    this.#kept.set(name, kept);
    return kept[0];
  }
}

/** The answer as an object that throws for unknown fields: a misspelt one would be undefined, which is neither consent nor refusal. */
function refuseUnknown(answer: unknown, names: readonly string[], message: string): unknown {
  if (typeof answer !== "object" || answer === null) return answer;
  return new Proxy(answer, {
    get: (target, field, receiver) => {
      const isKnown =
        typeof field === "symbol" || field in target || ["then", "toJSON", ...names].includes(field);
      if (isKnown) return Reflect.get(target, field, receiver) as unknown;
      throw new TypeError(
        `ask(${JSON.stringify(message)}): the answer has no ${JSON.stringify(field)}; ${suggest(field, names, `it has ${names.join(", ")}`)}`,
      );
    },
  });
}

function declined(message: string, { action }: Elicited): ToolError {
  const what = action === "decline" ? "declined" : "closed the question";
  return new ToolError(`The user ${what}: ${message}`, { code: "tool.declined" });
}

/** A short hash (FNV-1a): it tells questions of one handler apart, and guards nothing. */
function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}
